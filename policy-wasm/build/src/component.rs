//! Makes a component of a core module, with the manifest where the host reads it.

use std::path::PathBuf;

use crate::error::BuildError;

/// The section that `maka-policy-host` reads.
pub const SECTION: &str = "maka-policy-manifest";

/// Makes a component of a module that carries its manifest: what `maka_policy_sdk::policy!` puts into it. The manifest
/// is moved from the module to the outermost level, where it is read without looking into the module.
///
/// # Errors
///
/// When the module is damaged, has no manifest or several, or is none of a policy.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let (module, manifest) = lift(module)?;
    encode_with(&module, &manifest)
}

/// Makes a component of a module, with this manifest.
///
/// # Errors
///
/// When the module is none of a policy.
pub fn encode_with(module: &[u8], manifest: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encoded = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.encode());
    let component = encoded.map_err(|error| BuildError::Encode(format!("{error:#}")))?;
    Ok(append(component, manifest))
}

/// Puts a manifest into a component that another tool made.
///
/// # Errors
///
/// When it is no component, is damaged, or has a manifest already.
pub fn wrap(component: &[u8], manifest: &[u8]) -> Result<Vec<u8>, BuildError> {
    // Magic, then version 13 of the layer of components.
    const HEAD: &[u8] = b"\0asm\x0d\0\x01\0";
    let mut rest = component
        .strip_prefix(HEAD)
        .ok_or(BuildError::NotComponent)?;
    while let Some(id) = rest.first() {
        let (size, body) = read_leb128(&rest[1..]).ok_or(BuildError::NotComponent)?;
        let (payload, after) = body
            .split_at_checked(size)
            .ok_or(BuildError::NotComponent)?;
        if content(*id, payload).is_some() {
            return Err(BuildError::Wrapped);
        }
        rest = after;
    }
    Ok(append(component.to_vec(), manifest))
}

/// Appends the section with the manifest.
fn append(mut component: Vec<u8>, manifest: &[u8]) -> Vec<u8> {
    let mut payload = leb128(SECTION.len());
    payload.extend(SECTION.as_bytes());
    payload.extend(manifest);
    component.push(0);
    component.extend(leb128(payload.len()));
    component.extend(payload);
    component
}

/// Refuses a component that holds the name of one of these folders.
///
/// # Errors
///
/// Names the folder.
pub fn check_leaks(component: &[u8], folders: &[PathBuf]) -> Result<(), BuildError> {
    for folder in folders {
        let name = folder.as_os_str().as_encoded_bytes();
        // The root is a part of every path.
        let holds = name.len() > 1 && component.windows(name.len()).any(|window| window == &*name);
        if holds {
            return Err(BuildError::Leak(folder.clone()));
        }
    }
    Ok(())
}

/// Takes the manifest section out of a core module.
fn lift(module: &[u8]) -> Result<(Vec<u8>, Vec<u8>), BuildError> {
    // Magic, then version 1.
    const HEAD: &[u8] = b"\0asm\x01\0\0\0";
    let mut rest = module.strip_prefix(HEAD).ok_or(BuildError::NotModule)?;
    let mut kept = HEAD.to_vec();
    let mut manifest = None;
    while let Some(id) = rest.first() {
        let (size, body) = read_leb128(&rest[1..]).ok_or(BuildError::NotModule)?;
        let (payload, after) = body.split_at_checked(size).ok_or(BuildError::NotModule)?;
        let section = &rest[..rest.len() - after.len()];
        rest = after;
        match content(*id, payload) {
            Some(content) => {
                if manifest.replace(content.to_vec()).is_some() {
                    return Err(BuildError::Manifest);
                }
            }
            None => kept.extend(section),
        }
    }
    Ok((kept, manifest.ok_or(BuildError::Manifest)?))
}

/// The content of the manifest section, if this is it.
fn content(id: u8, payload: &[u8]) -> Option<&[u8]> {
    if id != 0 {
        return None;
    }
    let (length, named) = read_leb128(payload)?;
    let (name, content) = named.split_at_checked(length)?;
    (name == SECTION.as_bytes()).then_some(content)
}

/// An unsigned number in the variable-length form of WebAssembly.
fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits fit in a byte");
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn read_leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(id: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![id];
        bytes.extend(leb128(payload.len()));
        bytes.extend(payload);
        bytes
    }

    fn custom(name: &str, content: &[u8]) -> Vec<u8> {
        let mut payload = leb128(name.len());
        payload.extend(name.as_bytes());
        payload.extend(content);
        section(0, &payload)
    }

    fn module(sections: &[Vec<u8>]) -> Vec<u8> {
        [b"\0asm\x01\0\0\0".to_vec(), sections.concat()].concat()
    }

    #[test]
    fn the_manifest_is_lifted_and_everything_else_stays() {
        let long = vec![b'x'; 300];
        let whole = module(&[
            section(1, b"types"),
            custom(SECTION, &long),
            custom("name", b"n"),
        ]);
        let (kept, manifest) = lift(&whole).unwrap();
        assert_eq!(kept, module(&[section(1, b"types"), custom("name", b"n")]));
        assert_eq!(manifest, long);
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        let twice = module(&[custom(SECTION, b"{}"), custom(SECTION, b"{}")]);
        assert!(matches!(lift(&twice), Err(BuildError::Manifest)));
        assert!(matches!(lift(&module(&[])), Err(BuildError::Manifest)));
        assert!(matches!(
            lift(b"\0asm\x0d\0\x01\0"),
            Err(BuildError::NotModule)
        ));
        let cut = module(&[custom(SECTION, b"{}")]);
        assert!(matches!(
            lift(&cut[..cut.len() - 1]),
            Err(BuildError::NotModule)
        ));
        assert!(matches!(
            encode_with(b"junk", b"{}"),
            Err(BuildError::Encode(_))
        ));
    }

    #[test]
    fn a_component_gets_one_manifest() {
        let bare = [b"\0asm\x0d\0\x01\0".to_vec(), custom("name", b"n")].concat();
        let wrapped = wrap(&bare, b"{}").unwrap();
        assert_eq!(wrapped, [bare.clone(), custom(SECTION, b"{}")].concat());
        assert!(matches!(wrap(&wrapped, b"{}"), Err(BuildError::Wrapped)));
        for bad in [&bare[..bare.len() - 1], &module(&[]), b"junk"] {
            assert!(matches!(wrap(bad, b"{}"), Err(BuildError::NotComponent)));
        }
    }

    #[test]
    fn folder_names_are_found() {
        let folders = [PathBuf::from("/"), PathBuf::from("/home/author")];
        assert!(check_leaks(b"src/lib.rs /cargo", &folders).is_ok());
        let leak = check_leaks(b"..../home/author/policy/src/lib.rs", &folders);
        assert!(matches!(leak, Err(BuildError::Leak(folder)) if folder == folders[1]));
    }
}
