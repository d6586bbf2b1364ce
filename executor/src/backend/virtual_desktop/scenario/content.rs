//! What the kinds of control have in common: whether they can be pressed, written or focused, and the value they hold.

use super::Content;

impl Content {
    /// Whether a press does something to it.
    pub(crate) const fn is_pressable(&self) -> bool {
        match self {
            Self::Button { .. }
            | Self::Link
            | Self::CheckBox { .. }
            | Self::RadioButton { .. }
            | Self::PopUpButton { .. }
            | Self::Row { .. }
            | Self::MenuItem => true,
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::Image
            | Self::Progress { .. }
            | Self::TextField { .. }
            | Self::SecureField { .. }
            | Self::TextArea { .. }
            | Self::List { .. }
            | Self::MenuBar
            | Self::Menu
            | Self::ContextMenu
            | Self::Slider { .. } => false,
        }
    }

    /// Whether its value can be written.
    pub(crate) const fn is_writable(&self) -> bool {
        self.is_text() || matches!(self, Self::Slider { .. })
    }

    /// Whether it holds text that can be edited.
    pub(crate) const fn is_text(&self) -> bool {
        matches!(
            self,
            Self::TextField { .. } | Self::SecureField { .. } | Self::TextArea { .. }
        )
    }

    /// Whether it can have the keyboard focus.
    pub(crate) const fn is_focusable(&self) -> bool {
        match self {
            Self::Button { .. }
            | Self::Link
            | Self::TextField { .. }
            | Self::SecureField { .. }
            | Self::TextArea { .. }
            | Self::CheckBox { .. }
            | Self::RadioButton { .. }
            | Self::PopUpButton { .. }
            | Self::List { .. }
            | Self::Slider { .. } => true,
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::Image
            | Self::Progress { .. }
            | Self::Row { .. }
            | Self::MenuBar
            | Self::Menu
            | Self::MenuItem
            | Self::ContextMenu => false,
        }
    }

    /// The text that can be edited, that of a secure field included.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::TextField { value } | Self::SecureField { value } | Self::TextArea { value } =
            self
        {
            Some(value)
        } else {
            None
        }
    }

    /// As [`Content::text`], to change it.
    pub(crate) fn text_mut(&mut self) -> Option<&mut String> {
        if let Self::TextField { value } | Self::SecureField { value } | Self::TextArea { value } =
            self
        {
            Some(value)
        } else {
            None
        }
    }

    /// Its value as the application knows it, that of a secure field included; `None` for a control without one.
    ///
    /// What leaves the desktop is narrower: see `accessibility.rs`.
    pub(crate) fn shown_value(&self) -> Option<String> {
        let flag = |on: bool| Some(if on { "1" } else { "0" }.to_owned());
        match self {
            Self::TextField { value } | Self::TextArea { value } | Self::SecureField { value } => {
                Some(value.clone())
            }
            Self::CheckBox { checked } => flag(*checked),
            Self::RadioButton { chosen } => flag(*chosen),
            Self::PopUpButton { choices, chosen } => choices.get(*chosen).cloned(),
            Self::Progress { percent } => Some(percent.to_string()),
            Self::Slider { value, .. } => Some(value.to_string()),
            Self::Window(_)
            | Self::Group
            | Self::Panel
            | Self::Label(_)
            | Self::Button { .. }
            | Self::Link
            | Self::Image
            | Self::List { .. }
            | Self::Row { .. }
            | Self::MenuBar
            | Self::Menu
            | Self::MenuItem
            | Self::ContextMenu => None,
        }
    }

    /// Takes a new value; `false`, and nothing changed, when it holds none or the text does not stand for one.
    ///
    /// A slider moves to the nearest number it can show.
    pub(crate) fn set_value(&mut self, text: &str) -> bool {
        if let Some(value) = self.text_mut() {
            text.clone_into(value);
            return true;
        }
        let number = text
            .trim()
            .parse()
            .ok()
            .filter(|number| f64::is_finite(*number));
        if let Self::PopUpButton { choices, chosen } = self {
            let found = choices.iter().position(|choice| choice == text);
            *chosen = found.unwrap_or(*chosen);
            return found.is_some();
        }
        if let Self::Progress { percent } = self {
            let share = number.filter(|number| (0.0..=100.0).contains(number));
            *percent = share.map_or(*percent, |share| share.round() as u8);
            return share.is_some();
        }
        number.is_some_and(|number| self.slide_to(number))
    }

    /// Moves a slider to the number nearest to `number` that it can show; `false` for anything else.
    pub(crate) fn slide_to(&mut self, number: f64) -> bool {
        let Self::Slider {
            value,
            min,
            max,
            step,
        } = self
        else {
            return false;
        };
        let steps = ((number.clamp(*min, *max) - *min) / *step).round();
        *value = (*min + steps * *step).clamp(*min, *max);
        true
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
