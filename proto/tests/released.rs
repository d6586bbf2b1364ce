//! Holds the contract to what was released: `released.txt` has one line for each field, enum value and
//! method that clients may rely on. A line that vanishes or changes breaks a client and fails here; new
//! lines are added by running this test with `MAKA_PROTO_ACCEPT=1`, which refuses to drop any.

use std::{collections::BTreeSet, env, fs, path::Path};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet, field_descriptor_proto::Label,
};

/// Every fact of the descriptor set that the wire or the JSON form depends on, one a line.
fn facts() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(maka_proto::DESCRIPTOR_SET).expect("built by build.rs");
    let mut facts = BTreeSet::new();
    for file in &set.file {
        for message in &file.message_type {
            message_facts(message.name(), message, &mut facts);
        }
        for descriptor in &file.enum_type {
            enum_facts(descriptor.name(), descriptor, &mut facts);
        }
        for service in &file.service {
            for method in &service.method {
                facts.insert(format!(
                    "rpc {}/{} {}{} {}{}",
                    service.name(),
                    method.name(),
                    if method.client_streaming() {
                        "stream "
                    } else {
                        ""
                    },
                    method.input_type(),
                    if method.server_streaming() {
                        "stream "
                    } else {
                        ""
                    },
                    method.output_type(),
                ));
            }
        }
    }
    facts
}

fn message_facts(path: &str, message: &DescriptorProto, facts: &mut BTreeSet<String>) {
    for field in &message.field {
        let repeated = if field.label() == Label::Repeated {
            "repeated "
        } else {
            ""
        };
        facts.insert(format!(
            "field {path}.{} = {} {repeated}{:?} {}",
            field.name(),
            field.number(),
            field.r#type(),
            field.type_name(),
        ));
    }
    for nested in &message.nested_type {
        message_facts(&format!("{path}.{}", nested.name()), nested, facts);
    }
    for descriptor in &message.enum_type {
        enum_facts(&format!("{path}.{}", descriptor.name()), descriptor, facts);
    }
}

fn enum_facts(path: &str, descriptor: &EnumDescriptorProto, facts: &mut BTreeSet<String>) {
    for value in &descriptor.value {
        facts.insert(format!(
            "value {path}.{} = {}",
            value.name(),
            value.number()
        ));
    }
}

#[test]
fn released_fields_values_and_methods_are_still_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("released.txt");
    let released: BTreeSet<String> = fs::read_to_string(&path)
        .unwrap_or_default()
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    let current: BTreeSet<String> = facts()
        .iter()
        .map(|fact| fact.trim_end().to_owned())
        .collect();

    let broken: Vec<&String> = released.difference(&current).collect();
    assert!(
        broken.is_empty(),
        "released facts that are gone or changed: {broken:#?}"
    );

    if env::var_os("MAKA_PROTO_ACCEPT").is_some() {
        let text: String = current.iter().map(|fact| format!("{fact}\n")).collect();
        fs::write(&path, text).expect("the crate's folder is writable");
    } else {
        let new: Vec<&String> = current.difference(&released).collect();
        assert!(
            new.is_empty(),
            "not in released.txt yet, run this test with MAKA_PROTO_ACCEPT=1: {new:#?}"
        );
    }
}
