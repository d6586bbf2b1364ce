//! `keygen`, `sign` and `verify`: who wrote a policy, and that it is still what was written.

use std::path::Path;

use maka_policy_host::bundle::{self, Bundle, BundleError};
use maka_policy_host::digest::Digest;
use maka_policy_host::fixture::FILE_BYTES;
use maka_policy_host::proof;
use serde_json::json;

use crate::command_line::{KeygenArguments, SignArguments, TestArguments, VerifyArguments};
use crate::error::InputError;
use crate::fixture;
use crate::key::{create, create_capture, read_public, read_secret, write_new};
use crate::reference::read_file;
use crate::report::{Exit, Report};
use crate::suite;
use crate::workbench::Workbench;

/// Makes a pair of keys.
///
/// # Errors
///
/// When one of the files is there already or cannot be written.
pub fn keygen(arguments: &KeygenArguments) -> Result<Report, InputError> {
    let (public, beside) = if arguments.capture {
        let (public, beside) = create_capture(&arguments.file)?;
        (public.to_string(), beside)
    } else {
        let (public, beside) = create(&arguments.file)?;
        (public.to_string(), beside)
    };
    let out = format!(
        "secret key: {} (keep it to yourself)\npublic key: {} ({public})\n",
        arguments.file.display(),
        beside.display()
    );
    Ok(Report::new(out, Exit::Passed))
}

/// Signs a policy that a gateway would load and that passes its fixtures.
///
/// # Errors
///
/// When policy, fixtures or key cannot be worked with, or the bundle cannot be written. A case that fails is a result, and
/// then nothing is written.
pub fn sign(arguments: &SignArguments) -> Result<Report, InputError> {
    let key = read_secret(&arguments.key)?;
    let tested = suite::run(&TestArguments {
        policy: arguments.policy.clone(),
        fixtures: vec![arguments.fixtures.clone()],
        json: false,
        coverage: false,
        min: None,
        mutate: false,
        load: arguments.load.clone(),
    })?;
    if tested.exit != Exit::Passed {
        return Ok(tested);
    }
    let bench = Workbench::new(&arguments.load)?;
    let policy = bench.read(&arguments.policy)?;
    let mut fixtures = Vec::new();
    for file in fixture::folder(&arguments.fixtures)? {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| refused(&file, BundleError::Name))?;
        fixtures.push((name.to_owned(), read_file(&file, FILE_BYTES)?));
    }
    // Once more as a gateway runs them, which knows nothing of the settings given here.
    proof::fixtures(bench.engine(), &bench.load(&arguments.policy)?, &fixtures)?;
    let count = fixtures.len();
    let bundle = Bundle::of(&policy, fixtures).map_err(|error| refused(&arguments.out, error))?;
    let file = bundle
        .sign(&key)
        .map_err(|error| refused(&arguments.out, error))?;
    write_new(&arguments.out, 0o644, file)?;
    let out = format!(
        "signed: {} with {count} fixture files\npolicy {}\nkey    {}\n",
        arguments.out.display(),
        Digest::of(bundle.policy()),
        key.public()
    );
    Ok(Report::new(out, Exit::Passed))
}

/// Checks the signature of a bundle, and then whether a gateway would load the policy in it.
///
/// # Errors
///
/// When bundle or keys cannot be read, or the bundle is refused.
pub fn verify(arguments: &VerifyArguments) -> Result<Report, InputError> {
    let keys = arguments
        .key
        .iter()
        .map(|path| read_public(path))
        .collect::<Result<Vec<_>, _>>()?;
    let file = read_file(&arguments.bundle, bundle::MAX_BYTES)?;
    let verified =
        Bundle::verify(&file, &keys).map_err(|error| refused(&arguments.bundle, error))?;
    let bench = Workbench::new(&arguments.load)?;
    let module = bench.load_bytes(&arguments.bundle.display().to_string(), &verified.policy)?;
    let manifest = module.manifest();
    let out = if arguments.json {
        let value = json!({
            "schema": "maka.policy.verify/1", "name": manifest.name, "version": manifest.version,
            "digest": module.digest().to_string(), "key": verified.key.to_string(), "fixtures": verified.fixtures.len(),
        });
        format!("{value}\n")
    } else {
        format!(
            "verified: {} {} with {} fixture files\npolicy {}\nkey    {}\n",
            manifest.name,
            manifest.version,
            verified.fixtures.len(),
            module.digest(),
            verified.key
        )
    };
    Ok(Report::new(out, Exit::Passed))
}

fn refused(path: &Path, source: BundleError) -> InputError {
    InputError::Bundle {
        path: path.to_owned(),
        source,
    }
}
