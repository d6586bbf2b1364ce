//! `cargo xtask demo`: a tour of the gateway on the embedded desktop, for someone who has never heard of it.
//! A real gateway and a real executor run; every line printed is what they answered. Exits 1 when a step did
//! not end as the tour promises.

#![expect(
    clippy::print_stdout,
    reason = "the tour is for a person on a terminal"
)]

mod tour;

use std::process::ExitCode;

use integration_tests::gateway::{Executor, GatewayOptions, GatewayProcess};

#[tokio::main]
async fn main() -> ExitCode {
    println!("starting a gateway and an executor with the embedded desktop …\n");
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let picture = integration_tests::binaries::workspace_root().join("target/demo.png");
    let result = tour::run(&gateway, &picture).await;
    gateway.stop().await;
    match result {
        Ok(()) => {
            println!(
                "\nthat was the tour. What the desktop showed: {}",
                picture.display()
            );
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("\nthe tour broke: {broken}");
            ExitCode::FAILURE
        }
    }
}
