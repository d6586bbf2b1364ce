//! Pictures that are not what the answer says of them.
//!
//! The default answer has a true picture; here its file, or what is said of it, is changed. What cannot be made (a device node, where
//! the system forbids it) falls back to a lie of the same kind, so that a script means the same everywhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;

use maka_cu_protocol::ids::Digest;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::script::PictureLie;

/// The frame budget (spec maka-cu §10.3).
const BUDGET: usize = 8 * 1024 * 1024;

/// Spoils the picture of an answer, if it has one.
pub(crate) fn lie(lie: PictureLie, result: &mut Value) {
    let place = ["/snapshot/image", "/image"]
        .into_iter()
        .find(|place| result.pointer(place).is_some_and(Value::is_object));
    let Some(image) = place.and_then(|place| result.pointer_mut(place)) else {
        return;
    };
    let Some(path) = image["path"].as_str().map(PathBuf::from) else {
        return;
    };
    match lie {
        PictureLie::Gone => fs::remove_file(&path).expect("the picture was just written"),
        PictureLie::Outside => image["path"] = json!("/etc/hostname"),
        PictureLie::Winding => {
            let folder = path.parent().expect("a file lies in a folder");
            let name = folder.file_name().expect("the image folder has a name");
            let file = path.file_name().expect("a file has a name");
            image["path"] = json!(folder.join("..").join(name).join(file));
        }
        PictureLie::Link => replaced(&path, |path| {
            let kept = path.with_extension("kept");
            fs::copy(beside(path), &kept).expect("the picture can be copied");
            symlink(&kept, path).expect("a link can be made");
        }),
        PictureLie::Fifo => replaced(&path, fifo),
        PictureLie::Device => replaced(&path, |path| {
            // /dev/zero; where devices cannot be made, a pipe is as endless.
            let zero = makedev(1, 5);
            if mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR, zero).is_err() {
                fifo(path);
            }
        }),
        PictureLie::Folder => replaced(&path, |path| {
            fs::create_dir(path).expect("a folder can be made");
        }),
        PictureLie::Hash => {
            image["sha256"] = json!(Digest::of(b"another picture").to_string());
        }
        PictureLie::Length => {
            let length = image["byteLength"].as_u64().unwrap_or_default();
            image["byteLength"] = json!(length + 1);
        }
        PictureLie::Growing => {
            // Before the answer goes out, so that no reader is ever in time.
            append(&path).expect("the picture can be written");
            thread::spawn(move || grow(&path));
        }
        PictureLie::AsLargeAsMayBe => enlarge(&path, BUDGET, image),
        PictureLie::TooLarge => enlarge(&path, BUDGET + 1, image),
    }
}

/// Bytes that a growing picture grows by at a time.
const CHUNK: usize = 4096;

/// Makes the picture longer, and says so.
fn enlarge(path: &Path, length: usize, image: &mut Value) {
    let mut bytes = fs::read(path).expect("the picture was just written");
    bytes.resize(length, 0);
    fs::write(path, &bytes).expect("the picture can be written");
    image["byteLength"] = json!(bytes.len());
    image["sha256"] = json!(Digest::of(&bytes).to_string());
}

/// Puts something else in the place of the picture, which stays readable [`beside`] it until then.
fn replaced(path: &Path, make: impl FnOnce(&Path)) {
    fs::rename(path, beside(path)).expect("the picture was just written");
    make(path);
    fs::remove_file(beside(path)).expect("it was just put there");
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("true")
}

fn fifo(path: &Path) {
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe can be made");
}

/// Adds to the picture until it is gone; at most as much as one might read by mistake.
fn grow(path: &Path) {
    let mut left = 4 * BUDGET;
    while left > 0 && append(path).is_ok() {
        left = left.saturating_sub(CHUNK);
        thread::yield_now();
    }
}

/// Makes the picture longer without saying so.
fn append(path: &Path) -> std::io::Result<()> {
    use std::io::Write as _;

    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(&[0; CHUNK])
}
