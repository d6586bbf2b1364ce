//! What the kinds of control have in common: whether they can be pressed or written, and the value they hold.

use super::Content;

impl Content {
    /// Whether a press does something to it.
    pub(crate) const fn is_pressable(&self) -> bool {
        match self {
            Self::Button { .. } | Self::CheckBox { .. } | Self::Row { .. } | Self::MenuItem => true,
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::TextField { .. }
            | Self::SecureField { .. }
            | Self::TextArea { .. }
            | Self::List
            | Self::MenuBar
            | Self::Menu
            | Self::Slider { .. } => false,
        }
    }

    /// Whether its value can be written.
    pub(crate) const fn is_writable(&self) -> bool {
        match self {
            Self::TextField { .. }
            | Self::SecureField { .. }
            | Self::TextArea { .. }
            | Self::Slider { .. } => true,
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::Button { .. }
            | Self::CheckBox { .. }
            | Self::List
            | Self::Row { .. }
            | Self::MenuBar
            | Self::Menu
            | Self::MenuItem => false,
        }
    }

    /// Its value as the application knows it, that of a secure field included; `None` for a control without one.
    ///
    /// What leaves the desktop is narrower: see `accessibility.rs`.
    pub(crate) fn shown_value(&self) -> Option<String> {
        match self {
            Self::TextField { value } | Self::TextArea { value } | Self::SecureField { value } => {
                Some(value.clone())
            }
            Self::CheckBox { checked } => Some(if *checked { "1" } else { "0" }.to_owned()),
            Self::Slider { value, .. } => Some(value.to_string()),
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::Button { .. }
            | Self::List
            | Self::Row { .. }
            | Self::MenuBar
            | Self::Menu
            | Self::MenuItem => None,
        }
    }

    /// Takes a new value; `false`, and nothing changed, when it holds none or the text does not stand for one.
    ///
    /// A slider moves to the nearest number it can show.
    pub(crate) fn set_value(&mut self, text: &str) -> bool {
        match self {
            Self::TextField { value } | Self::SecureField { value } | Self::TextArea { value } => {
                text.clone_into(value);
                true
            }
            Self::Slider {
                value,
                min,
                max,
                step,
            } => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    let steps = ((number.clamp(*min, *max) - *min) / *step).round();
                    *value = (*min + steps * *step).clamp(*min, *max);
                    true
                }
                Ok(_) | Err(_) => false,
            },
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::Button { .. }
            | Self::CheckBox { .. }
            | Self::List
            | Self::Row { .. }
            | Self::MenuBar
            | Self::Menu
            | Self::MenuItem => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Content;

    #[test]
    fn a_slider_takes_the_nearest_number_it_can_show() {
        for (text, expected) in [
            ("40", "40"),
            ("41.9", "40"),
            ("44", "45"),
            ("-3", "0"),
            ("1000", "100"),
        ] {
            let mut slider = Content::Slider {
                value: 10.0,
                min: 0.0,
                max: 100.0,
                step: 5.0,
            };
            assert!(slider.set_value(text), "{text}");
            assert_eq!(slider.shown_value().as_deref(), Some(expected), "{text}");
        }
        for text in ["", "forty", "NaN", "inf"] {
            let mut slider = Content::Slider {
                value: 10.0,
                min: 0.0,
                max: 100.0,
                step: 5.0,
            };
            assert!(!slider.set_value(text), "{text}");
        }
    }
}
