//! Desktops that cannot be taken.

use std::env;
use std::process::{Command, Stdio};

use maka_cu::backend::linux::{LinuxDesktop, diagnose};
use maka_desktop::{Desktop, DesktopOptions};

#[test]
fn without_a_display_or_a_bus_the_refusal_says_what_to_do() {
    if env::var_os("MAKA_TEST_REFUSAL").is_some() {
        let refusal = LinuxDesktop::open().unwrap_err();
        assert!(refusal.remedy.contains("maka-desktop run --"), "{refusal}");
        assert!(
            diagnose()
                .iter()
                .any(|finding| !finding.ok && finding.remedy.is_some())
        );
        return;
    }
    let desktop = Desktop::start(DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    })
    .unwrap();
    let inner = |change: &dyn Fn(&mut Command)| {
        let mut command = desktop.command(env::current_exe().unwrap());
        command.args([
            "--exact",
            "refusals::without_a_display_or_a_bus_the_refusal_says_what_to_do",
        ]);
        change(command.env("MAKA_TEST_REFUSAL", "1"));
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    };
    inner(&|command| {
        command.env_remove("DISPLAY");
    });
    inner(&|command| {
        command.env("DISPLAY", ":65000");
    });
    inner(&|command| {
        command.env("XAUTHORITY", "/dev/null");
    });
}
