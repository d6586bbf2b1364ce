//! Cold start to SERVING with the embedded desktop, and what the gateway occupies when idle.

use std::{fs, time::Instant};

use integration_tests::gateway::{Executor, GatewayOptions, GatewayProcess};

use crate::distribution::{Distribution, Report};

const STARTS: usize = 15;

pub(crate) async fn cold_start_and_memory(report: &mut Report) {
    let mut starts = Distribution::default();
    let mut resident = 0.0_f64;
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut options = GatewayOptions::new(Executor::Virtual);
        options.log_level = "info";
        let gateway = GatewayProcess::serving(options).await;
        starts.push(began.elapsed());
        resident = resident.max(resident_megabytes(gateway.pid().as_raw()));
        gateway.stop().await;
    }
    report.times("cold start to SERVING, embedded desktop", &starts);
    report.value(
        "  median",
        starts.median().as_secs_f64() * 1e3,
        "ms",
        "≤ 300 ms",
    );
    report.value(
        "idle resident memory of the gateway",
        resident,
        "MB",
        "≤ 40 MB",
    );
}

/// `VmRSS` of `/proc/PID/status`, in megabytes of 1,000,000 bytes; 0 where there is no such file.
pub(crate) fn resident_megabytes(pid: i32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<f64>().ok());
    kibibytes.unwrap_or_default() * 1024.0 / 1e6
}
