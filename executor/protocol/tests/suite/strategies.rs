//! Generators of every legal value.

use maka_cu_protocol::{
    action::*, difference::*, domain::DomainCode, element::Element, geometry::*, handshake::*,
    ids::*, image::*, keys::*, menu::*, method::Method, params::*, refusal::*, roles::Role,
    sets::*, snapshot::*, text::*,
};
use proptest::{collection::vec, option::of, prelude::*, sample::select};

/// Text with everything that escaping, splitting or an overeager parser could trip over.
pub(crate) fn text() -> BoxedStrategy<String> {
    prop_oneof![
        ".{0,12}",
        "[\\x00-\\x1f\"\\\\/]{0,6}",
        Just("é漢😀\u{2028}".to_owned()),
        Just("null".to_owned())
    ]
    .boxed()
}

fn some() -> impl Strategy<Value = String> {
    text().prop_map(|text| {
        if text.is_empty() {
            "x".to_owned()
        } else {
            text
        }
    })
}

pub(crate) fn app_text() -> impl Strategy<Value = AppText> {
    text().prop_map(AppText::new)
}

pub(crate) fn some_text() -> impl Strategy<Value = SomeText> {
    some().prop_map(|text| SomeText::new(text).unwrap())
}

macro_rules! id_strategies {
    ($($name:ident: $type:ident),+) => {$(
        pub(crate) fn $name() -> impl Strategy<Value = $type> {
            some().prop_map(|id| $type::try_new(id).unwrap())
        }
    )+};
}
id_strategies! {
    session_id: SessionId, snapshot_id: SnapshotId, token: ElementToken, tool_call_id: ToolCallId, app_id: AppId,
    display_id: DisplayId, stream_id: StreamId
}

pub(crate) fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

pub(crate) fn whole() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..1000, Just(9_007_199_254_740_991)]
}

pub(crate) fn signed() -> impl Strategy<Value = i64> {
    prop_oneof![-1000_i64..1000, Just(-9_007_199_254_740_991)]
}

pub(crate) fn millis() -> impl Strategy<Value = Millis> {
    whole().prop_map(Millis)
}

pub(crate) fn finite() -> BoxedStrategy<f64> {
    prop_oneof![
        (-5000_i32..5000).prop_map(f64::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()),
    ]
    .boxed()
}

/// One member of a closed set.
pub(crate) fn member<T: Copy + std::fmt::Debug + 'static>(
    all: &'static [T],
) -> impl Strategy<Value = T> {
    select(all)
}

macro_rules! rect_strategies {
    ($($name:ident: $type:ident),+) => {$(
        pub(crate) fn $name() -> impl Strategy<Value = $type> {
            (finite(), finite(), finite(), finite()).prop_map(|(x, y, w, h)| $type::try_new(x, y, w, h).unwrap())
        }
    )+};
}
rect_strategies! { screen_rect: ScreenRect, window_rect: WindowRect, image_rect: ImageRect }

macro_rules! point_strategies {
    ($($name:ident: $type:ident),+) => {$(
        pub(crate) fn $name() -> impl Strategy<Value = $type> {
            (finite(), finite()).prop_map(|(x, y)| $type::try_new(x, y).unwrap())
        }
    )+};
}
point_strategies! { screen_point: ScreenPoint, image_point: ImagePoint }

fn screen_size() -> impl Strategy<Value = ScreenSize> {
    (finite(), finite()).prop_map(|(w, h)| ScreenSize::try_new(w.abs(), h.abs()).unwrap())
}

fn count() -> impl Strategy<Value = ClickCount> {
    (1_u32..=3).prop_map(|count| ClickCount::new(count).unwrap())
}

fn pages() -> impl Strategy<Value = Pages> {
    finite().prop_map(|pages| Pages::new(pages.abs()).unwrap_or(Pages::ONE))
}

pub(crate) fn element_action() -> BoxedStrategy<ElementAction> {
    prop_oneof![
        (member(MouseButton::ALL), count())
            .prop_map(|(button, count)| ElementAction::Click { button, count }),
        app_text().prop_map(|value| ElementAction::SetValue { value }),
        some_text().prop_map(|text| ElementAction::SelectText { text }),
        member(ElementVerb::ALL).prop_map(|action| ElementAction::SecondaryAction { action }),
        (member(Direction::ALL), pages())
            .prop_map(|(direction, pages)| ElementAction::Scroll { direction, pages }),
        screen_point().prop_map(|position| ElementAction::MoveWindow { position }),
        screen_size().prop_map(|size| ElementAction::ResizeWindow { size }),
        Just(ElementAction::MinimizeWindow),
    ]
    .boxed()
}

pub(crate) fn key_action() -> BoxedStrategy<KeyAction> {
    let keys: Vec<Key> = Key::all().collect();
    prop_oneof![
        app_text().prop_map(|text| KeyAction::Type { text }),
        (select(keys), vec(member(Modifier::ALL), 0..6)).prop_map(|(key, modifiers)| {
            KeyAction::Key {
                key,
                modifiers: modifiers.into_iter().collect(),
            }
        }),
    ]
    .boxed()
}

pub(crate) fn point_action() -> BoxedStrategy<PointAction> {
    prop_oneof![
        Just(PointAction::Move),
        count().prop_map(|count| PointAction::LeftClick { count }),
        Just(PointAction::RightClick),
        Just(PointAction::MiddleClick),
        Just(PointAction::DoubleClick),
        Just(PointAction::TripleClick),
        Just(PointAction::MouseDown),
        Just(PointAction::MouseUp),
        Just(PointAction::Drag),
        (member(Direction::ALL), pages())
            .prop_map(|(direction, pages)| PointAction::Scroll { direction, pages }),
    ]
    .boxed()
}

pub(crate) fn menu_scope() -> BoxedStrategy<MenuScope> {
    prop_oneof![
        Just(MenuScope::Bar),
        some_text().prop_map(|title| MenuScope::Menu { title }),
        Just(MenuScope::All)
    ]
    .boxed()
}

pub(crate) fn window_key() -> impl Strategy<Value = WindowKey> {
    (any::<u32>(), any::<u32>()).prop_map(|(pid, window_id)| WindowKey { pid, window_id })
}

pub(crate) fn observe_target() -> BoxedStrategy<ObserveTarget> {
    prop_oneof![
        app_id().prop_map(ObserveTarget::App),
        window_key().prop_map(ObserveTarget::Window)
    ]
    .boxed()
}

pub(crate) fn observe_after() -> impl Strategy<Value = ObserveAfter> {
    (any::<bool>(), member(SettleMode::ALL), of(menu_scope())).prop_map(
        |(include_image, settle, menu)| ObserveAfter {
            include_image,
            settle,
            menu,
        },
    )
}

pub(crate) fn absolute_path() -> impl Strategy<Value = AbsolutePath> {
    "/[a-z]{1,5}(/[^/\\x00]{1,5}){0,3}"
        .prop_filter_map("no step up", |path| AbsolutePath::try_new(path).ok())
}

pub(crate) fn image() -> BoxedStrategy<ImageRef> {
    let sizes = (any::<u32>(), any::<u32>(), whole(), finite());
    (absolute_path(), member(ImageFormat::ALL), sizes, digest())
        .prop_map(
            |(path, format, (width_px, height_px, byte_length, scale), sha256)| ImageRef {
                path,
                format,
                width_px,
                height_px,
                byte_length,
                sha256,
                scale,
            },
        )
        .boxed()
}

fn element(token: String, stable_id: Option<u64>) -> BoxedStrategy<Element> {
    let texts = (
        of(text()),
        of(app_text()),
        of(app_text()),
        of(app_text()),
        of(app_text()),
        of(app_text()),
    );
    let flags = (any::<bool>(), any::<bool>(), of(any::<bool>()));
    let place = (of(self::token()), any::<u32>(), some(), of(window_rect()));
    let rest = (
        vec(member(ElementVerb::ALL), 0..4),
        digest(),
        vec(member(TextField::ALL), 0..3),
    );
    (texts, flags, place, rest)
        .prop_map(move |(texts, flags, place, rest)| {
            let (subrole, ax_identifier, title, label, value, placeholder) = texts;
            let ((enabled, focused, selected), (parent_token, depth, role, frame)) = (flags, place);
            let (actions, digest, truncated) = rest;
            Element {
                token: ElementToken::try_new(token.clone()).unwrap(),
                stable_id,
                parent_token,
                depth,
                role: Role::new(role).unwrap(),
                subrole,
                ax_identifier,
                title,
                label,
                value,
                placeholder,
                enabled,
                focused,
                selected,
                frame,
                actions,
                digest,
                truncated,
            }
        })
        .boxed()
}

fn elements(prefix: &'static str, numbered: bool) -> BoxedStrategy<Vec<Element>> {
    (0_u64..4)
        .prop_flat_map(move |count| {
            (0..count)
                .map(|index| element(format!("{prefix}{index}"), numbered.then_some(index * 3)))
                .collect::<Vec<_>>()
        })
        .boxed()
}

fn truncation() -> impl Strategy<Value = Truncation> {
    (any::<bool>(), any::<bool>()).prop_map(|(elements, depth)| Truncation { elements, depth })
}

pub(crate) fn target() -> BoxedStrategy<SnapshotTarget> {
    let names = (app_id(), of(app_text()), of(app_text()), of(display_id()));
    (window_key(), names, screen_rect(), signed(), signed())
        .prop_map(
            |(window, (app_id, app_name, title, display_id), bounds, layer, z_index)| {
                SnapshotTarget {
                    pid: window.pid,
                    window_id: window.window_id,
                    app_id,
                    app_name,
                    title,
                    bounds,
                    layer,
                    z_index,
                    display_id,
                }
            },
        )
        .boxed()
}

fn display() -> BoxedStrategy<DisplayInfo> {
    (display_id(), screen_rect(), image_rect(), finite())
        .prop_map(
            |(display_id, logical_bounds, source_bounds_px, scale_factor)| DisplayInfo {
                display_id,
                logical_bounds,
                source_bounds_px,
                scale_factor,
            },
        )
        .boxed()
}

/// A difference that fits the elements of a numbered tree.
fn difference(elements: &[Element]) -> impl Strategy<Value = Difference> + use<> {
    let updates: Vec<Change> = elements
        .iter()
        .map(|element| Change {
            path: vec![0, 3],
            stable_id: element.stable_id.unwrap(),
            changed: Changed::Updated(element.token.clone()),
        })
        .chain([Change {
            path: vec![0],
            stable_id: 100,
            changed: Changed::Removed,
        }])
        .collect();
    (snapshot_id(), any::<bool>()).prop_map(move |(base_snapshot_id, full)| Difference {
        base_snapshot_id,
        presentation: if full {
            Presentation::Full
        } else {
            Presentation::Difference
        },
        changes: if full { Vec::new() } else { updates.clone() },
        removed_stable_id_ranges: vec![StableIdRange {
            start: 100,
            end: 104,
        }],
    })
}

pub(crate) fn snapshot() -> BoxedStrategy<Snapshot> {
    any::<bool>()
        .prop_flat_map(|numbered| {
            elements("el_", numbered).prop_flat_map(move |elements| {
                let difference = difference_of(numbered, &elements);
                (Just(elements), difference)
            })
        })
        .prop_flat_map(|(elements, difference)| {
            let head = (snapshot_id(), millis(), target(), digest(), of(token()));
            let selected = of((some_text(), any::<bool>()));
            let menu = of((self::elements("me_", false), truncation()));
            let around = (
                selected,
                of(image()),
                of(member(ImageAbsence::ALL)),
                vec(display(), 0..2),
                vec(screen_rect(), 0..2),
                truncation(),
                menu,
            );
            (head, around).prop_map(move |(head, around)| {
                let (snapshot_id, captured_at, target, window_digest, focused_element_token) = head;
                let (selected, image, absence, displays, obscuring_rects, truncated, menu) = around;
                Snapshot {
                    snapshot_id,
                    captured_at,
                    target,
                    window_digest,
                    focused_element_token,
                    selected_text: selected
                        .map(|(text, truncated)| SelectedText { text, truncated }),
                    image_absence: absence.filter(|_| image.is_none()),
                    image,
                    displays,
                    obscuring_rects,
                    elements: elements.clone(),
                    truncated,
                    difference: difference.clone(),
                    menu: menu.map(|(elements, truncated)| Menu {
                        elements,
                        truncated,
                    }),
                }
            })
        })
        .boxed()
}

fn difference_of(numbered: bool, elements: &[Element]) -> BoxedStrategy<Option<Difference>> {
    if numbered {
        of(difference(elements)).boxed()
    } else {
        Just(None).boxed()
    }
}

pub(crate) fn detail() -> impl Strategy<Value = Detail> {
    let sets = (
        vec(member(ChangedInput::ALL), 0..4),
        of(member(Path::ALL)),
        of(member(Permission::ALL)),
    );
    (sets, of(whole()), of(whole())).prop_map(
        |((changed, would_require_path, permission), bytes, limit)| Detail {
            changed,
            would_require_path,
            permission,
            bytes,
            limit,
        },
    )
}

pub(crate) fn refusal() -> BoxedStrategy<Refusal> {
    (member(DomainCode::ALL), detail())
        .prop_map(|(code, detail)| Refusal { code, detail })
        .boxed()
}

pub(crate) fn limits() -> impl Strategy<Value = Limits> {
    (any::<bool>(), 1_u64..1_000_000).prop_map(|(extras, number)| {
        let limits = Limits {
            max_elements: number,
            shutdown_grace_ms: number,
            ..Limits::default()
        };
        if extras {
            limits
        } else {
            Limits {
                tree_walk_ceiling_ms: None,
                max_menu_elements: None,
                ..limits
            }
        }
    })
}

pub(crate) fn handshake() -> BoxedStrategy<Handshake> {
    let kinds = (
        vec(member(ElementActionKind::ALL), 0..8),
        vec(member(PointActionKind::ALL), 0..8),
        vec(member(KeyActionKind::ALL), 0..2),
        vec(member(ImageFormat::ALL), 0..2),
        of(vec(member(Method::ALL), 0..2)),
    );
    (
        text(),
        text(),
        of(text()),
        any::<u32>(),
        any::<bool>(),
        kinds,
        limits(),
    )
        .prop_map(
            |(name, version, commit, pid, capture_stream, kinds, limits)| {
                let (element_actions, point_actions, key_actions, image_formats, generic_methods) =
                    kinds;
                Handshake {
                    protocol: "maka.cu/2".to_owned(),
                    executor: ExecutorIdentity {
                        name,
                        version,
                        commit,
                    },
                    pid,
                    capabilities: Capabilities {
                        capture_stream,
                        element_actions,
                        point_actions,
                        key_actions,
                        image_formats,
                        generic_methods,
                    },
                    limits,
                }
            },
        )
        .boxed()
}
