//! Which role may call which method: one table, walked by a test over every served RPC.

use super::Role;

/// Who may call a method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Anybody, without credentials.
    Open,
    /// Any principal; anybody in development mode.
    AnyPrincipal,
    /// Principals with one of these roles.
    Roles(&'static [Role]),
}

/// Whoever drives the desktop.
const DRIVERS: Access = Access::Roles(&[Role::Agent, Role::Operator]);
/// Whoever looks at the gateway's state as well.
const WATCHERS: Access = Access::Roles(&[Role::Agent, Role::Viewer, Role::Operator]);
/// Whoever works on policies.
const AUTHORS: Access = Access::Roles(&[Role::Author, Role::Operator]);

/// Whoever runs the gateway.
const OPERATORS: Access = Access::Roles(&[Role::Operator]);

/// Every method that is served, by its path.
pub const TABLE: [(&str, Access); 30] = [
    ("/maka.gateway.v1.ComputerUse/GetStatus", WATCHERS),
    ("/maka.gateway.v1.ComputerUse/CheckPermissions", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/BeginSession", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/EndSession", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/ListSessions", WATCHERS),
    ("/maka.gateway.v1.ComputerUse/ListApps", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/LaunchApp", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/ListWindows", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/Snapshot", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/Dispatch", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/CaptureScreen", DRIVERS),
    ("/maka.gateway.v1.ComputerUse/ReadImage", DRIVERS),
    ("/maka.gateway.v1.Events/Watch", WATCHERS),
    ("/maka.gateway.v1.Operator/RestartExecutor", OPERATORS),
    ("/maka.gateway.v1.Operator/ReportHostEvent", OPERATORS),
    ("/maka.gateway.v1.Operator/ListApprovals", OPERATORS),
    ("/maka.gateway.v1.Operator/ResolveApproval", OPERATORS),
    ("/maka.gateway.v1.Operator/ClearQuarantine", OPERATORS),
    ("/maka.gateway.v1.Operator/WatchDecisions", OPERATORS),
    ("/maka.gateway.v1.Operator/CaptureDecisions", OPERATORS),
    ("/maka.gateway.v1.Policies/Activate", OPERATORS),
    ("/maka.gateway.v1.Policies/Deactivate", OPERATORS),
    ("/maka.gateway.v1.Policies/Evaluate", AUTHORS),
    ("/maka.gateway.v1.Policies/GetGeneration", AUTHORS),
    ("/maka.gateway.v1.Policies/List", AUTHORS),
    ("/maka.gateway.v1.Policies/Load", AUTHORS),
    ("/grpc.health.v1.Health/Check", Access::Open),
    ("/grpc.health.v1.Health/Watch", Access::Open),
    (
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        Access::AnyPrincipal,
    ),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        Access::AnyPrincipal,
    ),
];

/// Who may call `path`; `None` when nothing is served there.
#[must_use]
pub fn of(path: &str) -> Option<Access> {
    TABLE
        .iter()
        .find(|(served, _)| *served == path)
        .map(|(_, access)| *access)
}

impl Access {
    /// Whether a principal with `role` may call.
    #[must_use]
    pub fn admits(self, role: Role) -> bool {
        match self {
            Self::Open | Self::AnyPrincipal => true,
            Self::Roles(roles) => roles.contains(&role),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message as _;

    use super::*;

    fn methods_of(descriptor_set: &[u8]) -> impl Iterator<Item = String> {
        prost_types::FileDescriptorSet::decode(descriptor_set)
            .unwrap()
            .file
            .into_iter()
            .flat_map(|file| {
                let package = file.package().to_owned();
                file.service.into_iter().flat_map(move |service| {
                    let prefix = format!("/{package}.{}/", service.name());
                    service
                        .method
                        .into_iter()
                        .map(move |method| format!("{prefix}{}", method.name()))
                        .collect::<Vec<_>>()
                })
            })
    }

    /// The table names exactly the methods that the served descriptor sets define, streams and reflection included.
    #[test]
    fn the_table_covers_every_served_method() {
        let served: BTreeSet<String> = [
            maka_proto::DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ]
        .into_iter()
        .flat_map(methods_of)
        // The health service of this version of tonic knows `List` from newer definitions only by name.
        .collect();
        let listed: BTreeSet<String> = TABLE.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(served, listed);
        assert_eq!(listed.len(), TABLE.len(), "no method is listed twice");
    }

    /// The roles as design and documentation state them, one row per method and role.
    #[test]
    fn roles_are_as_documented() {
        use Role::{Agent, Author, Operator, Viewer};
        for (path, access) in TABLE {
            let expected: &[Role] = match path.rsplit_once('/').unwrap() {
                ("/maka.gateway.v1.ComputerUse", "GetStatus" | "ListSessions") => {
                    &[Agent, Viewer, Operator]
                }
                ("/maka.gateway.v1.ComputerUse", _) => &[Agent, Operator],
                ("/maka.gateway.v1.Events", _) => &[Agent, Viewer, Operator],
                ("/maka.gateway.v1.Operator", _) => &[Operator],
                ("/maka.gateway.v1.Policies", "Activate" | "Deactivate") => &[Operator],
                ("/maka.gateway.v1.Policies", _) => &[Author, Operator],
                _ => &[Agent, Viewer, Author, Operator],
            };
            for role in Role::ALL {
                assert_eq!(
                    access.admits(role),
                    expected.contains(&role),
                    "{path} for {role}"
                );
            }
        }
        assert_eq!(of("/maka.gateway.v1.ComputerUse/Nope"), None);
    }
}
