//! Trees, texts, menus and bounds of an observation (spec §4, §12.5 rows 56 and 61).

use serde_json::{Value, json};

use crate::desk::{self, SESSION};

#[test]
fn a_tree_is_whole_and_linked() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Form");
    let elements = snapshot["elements"].as_array().unwrap();
    assert_eq!(elements[0]["role"], "AXWindow");
    assert_eq!(elements[0]["depth"], 0);
    assert!(
        elements[0].get("parentToken").is_none(),
        "absent is absent and never null"
    );
    for (index, element) in elements.iter().enumerate().skip(1) {
        let parent = elements[..index]
            .iter()
            .find(|parent| parent["token"] == element["parentToken"]);
        let parent = parent.expect("a parent stands before its children");
        assert_eq!(element["depth"], parent["depth"].as_u64().unwrap() + 1);
    }
    assert!(!snapshot.to_string().contains("null"), "{snapshot}");
    assert_eq!(
        snapshot["truncated"],
        json!({ "elements": false, "depth": false })
    );
    assert_eq!(snapshot["target"]["appId"], "org.contract.Form");
}

#[test]
fn looking_twice_gives_the_same_digests_and_other_tokens() {
    let mut client = desk::start();
    let first = desk::observe(&mut client, "org.contract.Form");
    let second = desk::observe(&mut client, "org.contract.Form");
    assert_eq!(first["windowDigest"], second["windowDigest"]);
    let field = |snapshot: &Value, name: &str| -> Vec<Value> {
        snapshot["elements"]
            .as_array()
            .unwrap()
            .iter()
            .map(|element| element[name].clone())
            .collect()
    };
    assert_eq!(field(&first, "digest"), field(&second, "digest"));
    let tokens = field(&first, "token");
    assert!(
        field(&second, "token")
            .iter()
            .all(|token| !tokens.contains(token))
    );
}

/// Spec §12.5 row 56, field report F3.
#[test]
fn bounds_cut_trees_with_a_marker() {
    let mut client = desk::start();
    let rows = [
        ("org.contract.Large", json!({}), [true, false], 1500),
        (
            "org.contract.Large",
            json!({ "maxElements": 7 }),
            [true, false],
            7,
        ),
        (
            "org.contract.Large",
            json!({ "maxElements": 1 }),
            [true, false],
            1,
        ),
        ("org.contract.Deep", json!({}), [false, true], 64),
        (
            "org.contract.Deep",
            json!({ "maxDepth": 3 }),
            [false, true],
            3,
        ),
        (
            "org.contract.Deep",
            json!({ "maxDepth": 1 }),
            [false, true],
            1,
        ),
    ];
    for (app, bounds, truncated, count) in rows {
        let mut params = desk::app_params(app);
        params
            .as_object_mut()
            .unwrap()
            .extend(bounds.as_object().unwrap().clone());
        let snapshot = client.ok("observe", params)["snapshot"].clone();
        let cut = &snapshot["truncated"];
        assert_eq!(
            [&cut["elements"], &cut["depth"]],
            [&json!(truncated[0]), &json!(truncated[1])],
            "{app} {bounds}"
        );
        assert_eq!(
            snapshot["elements"].as_array().unwrap().len(),
            count,
            "{app} {bounds}"
        );
    }
}

/// Field report F3: a tree that contains itself.
#[test]
fn a_tree_with_a_cycle_ends() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Cycle");
    let cut = &snapshot["truncated"];
    let count = snapshot["elements"].as_array().unwrap().len();
    assert!(count <= 1500);
    assert!(
        count < 10 || cut["elements"] == true || cut["depth"] == true,
        "{count} {cut}"
    );
}

#[test]
fn tokens_of_a_cut_tree_work() {
    let mut client = desk::start();
    let mut params = desk::app_params("org.contract.Large");
    params["maxElements"] = json!(5);
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    let row = &snapshot["elements"][3];
    assert_eq!(row["actions"], json!(["press", "scroll_to_visible"]));
    let mut params = desk::dispatch_params(SESSION, &snapshot, row, json!({ "kind": "click" }));
    params["strictness"] = json!("window");
    client.ok("dispatch.element", params);
}

#[test]
fn a_spent_clock_still_gives_the_root() {
    let mut client = desk::start_with(&["--limit", "treeWalkCeilingMs=1"]);
    let snapshot = desk::observe(&mut client, "org.contract.Slow");
    assert_eq!(snapshot["elements"][0]["role"], "AXWindow");
    assert_eq!(snapshot["truncated"]["elements"], true);
}

/// Spec §1.5.
#[test]
fn a_message_over_the_bound_is_halved_and_then_refused() {
    let mut client = desk::start_with(&["--limit", "maxResponseBytes=100000"]);
    let id = client.send("observe", desk::app_params("org.contract.Large"));
    let answer = client.wait(id);
    assert!(answer.to_string().len() <= 100_000);
    let snapshot = &answer["result"]["snapshot"];
    assert_eq!(snapshot["truncated"]["elements"], true);
    let count = snapshot["elements"].as_array().unwrap().len();
    assert!(
        [750, 375, 187].contains(&count),
        "halved, not shaved: {count}"
    );

    let mut client = desk::start_with(&["--limit", "maxResponseBytes=1000"]);
    let result = client.call("observe", desk::app_params("org.contract.Large"));
    assert_eq!(result["error"]["code"], "response_too_large");
    assert_eq!(result["error"]["detail"]["limit"], 1000);
    assert!(result["error"]["detail"]["bytes"].as_u64().unwrap() > 1000);
}

#[test]
fn texts_are_cut_at_grapheme_clusters_and_say_so() {
    let mut client = desk::start();
    let snapshot = desk::observe(&mut client, "org.contract.Form");
    client.ok(
        "dispatch.element",
        desk::write_params(&snapshot, "Entry", "👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦"),
    );
    let mut params = desk::app_params("org.contract.Form");
    params["maxTextChars"] = json!(2);
    let snapshot = client.ok("observe", params)["snapshot"].clone();
    let entry = snapshot["elements"]
        .as_array()
        .unwrap()
        .iter()
        .find(|element| element["label"] == "En")
        .unwrap();
    assert_eq!(entry["value"], "👨‍👩‍👧‍👦👨‍👩‍👧‍👦");
    assert_eq!(entry["truncated"], json!(["label", "value"]));
}

/// Spec §12.5 row 61.
#[test]
fn a_menu_is_absent_empty_or_there_as_asked() {
    let mut client = desk::start();
    let plain = desk::observe(&mut client, "org.contract.Menus");
    assert!(plain.get("menu").is_none());
    let mut with = |app: &str, menu: Value| {
        let mut params = desk::app_params(app);
        params["menu"] = menu;
        client.ok("observe", params)["snapshot"].clone()
    };
    let none = with("org.contract.Form", json!({ "scope": "bar" }));
    assert_eq!(none["menu"]["elements"], json!([]));
    let bar = with("org.contract.Menus", json!({ "scope": "bar" }));
    let named = with(
        "org.contract.Menus",
        json!({ "scope": "menu", "title": "File" }),
    );
    let unnamed = with(
        "org.contract.Menus",
        json!({ "scope": "menu", "title": "No such menu" }),
    );
    let all = with("org.contract.Menus", json!({ "scope": "all" }));
    let titles = |snapshot: &Value| -> Vec<String> {
        let elements = snapshot["menu"]["elements"]
            .as_array()
            .unwrap()
            .iter()
            .skip(1);
        elements
            .map(|element| element["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(titles(&bar), ["File", "Edit"]);
    assert_eq!(bar["menu"]["truncated"]["depth"], true);
    assert_eq!(titles(&named), ["File", "Save", "Print", "Edit"]);
    assert_eq!(named["menu"]["truncated"]["depth"], false);
    assert_eq!(titles(&unnamed), ["File", "Edit"]);
    assert_eq!(titles(&all), ["File", "Save", "Print", "Edit", "Copy"]);
    for snapshot in [&bar, &named, &all] {
        assert_eq!(
            snapshot["windowDigest"], plain["windowDigest"],
            "the menu is not part of the window"
        );
        let elements = snapshot["menu"]["elements"].as_array().unwrap();
        assert!(
            elements
                .iter()
                .all(|element| element.get("frame").is_none())
        );
    }
    let digest = |snapshot: &Value, name| {
        desk::find_in(&snapshot["menu"]["elements"], name)["digest"].clone()
    };
    assert_eq!(
        digest(&bar, "Edit"),
        digest(&all, "Edit"),
        "the scope does not change digests"
    );
    assert_eq!(digest(&named, "Save"), digest(&all, "Save"));
}

#[test]
fn targets_are_exact() {
    let mut client = desk::start();
    let rows = [
        ("org.contract.Nothing", "app_not_found"),
        ("Form", "app_not_found"),
        ("org.contract.form", "app_not_found"),
        ("org.contract", "app_not_found"),
        ("org.contract.Opens", "app_not_found"),
    ];
    for (app, code) in rows {
        assert_eq!(
            client.refused("observe", desk::app_params(app)),
            code,
            "{app}"
        );
    }
    let form = desk::observe(&mut client, "org.contract.Form");
    let cover = desk::observe(&mut client, "org.contract.Cover");
    let mut params = desk::app_params("");
    params["target"] = json!({ "kind": "window", "pid": form["target"]["pid"], "windowId": form["target"]["windowId"] });
    assert_eq!(
        client.ok("observe", params.clone())["snapshot"]["target"]["title"],
        "Form"
    );
    // Another process's window of that number is no match.
    params["target"]["pid"] = cover["target"]["pid"].clone();
    assert_eq!(client.refused("observe", params), "window_gone");
}

#[test]
fn missing_permissions_are_named() {
    let desktop = tempfile::NamedTempFile::new().unwrap();
    let text = include_str!("desktop.toml");
    std::fs::write(
        desktop.path(),
        format!("[permissions]\naccessibility = false\n{text}"),
    )
    .unwrap();
    let path = desktop.path().to_str().unwrap();
    let mut client = crate::client::Client::start(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    let result = client.call("observe", desk::app_params("org.contract.Form"));
    assert_eq!(result["error"]["code"], "permission_missing");
    assert_eq!(
        result["error"]["detail"],
        json!({ "permission": "accessibility" })
    );

    std::fs::write(
        desktop.path(),
        format!("[permissions]\nscreen_recording = false\n{text}"),
    )
    .unwrap();
    let mut client = crate::client::Client::start(&["--back-end", "virtual", "--desktop", path]);
    desk::begin(&mut client, SESSION);
    let mut params = desk::app_params("org.contract.Form");
    client.ok("observe", params.clone());
    params["includeImage"] = json!(true);
    let result = client.call("observe", params);
    assert_eq!(
        result["error"]["detail"],
        json!({ "permission": "screen_recording" }),
        "no silent omission"
    );
    let check = client.ok("permissions.check", json!({}));
    assert_eq!(
        (&check["accessibility"], &check["screenRecording"]),
        (&json!(true), &json!(false))
    );
}
