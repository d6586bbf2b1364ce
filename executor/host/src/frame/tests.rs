//! Files that are what was said, files that are not, and pictures that do not fit their window.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use maka_cu_protocol::image::AbsolutePath;
use nix::sys::stat::Mode;
use tempfile::TempDir;

use super::*;

/// A varied picture of this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    let count = usize::try_from(width * height).unwrap();
    let pixels: Vec<u8> = (0..=u8::MAX).cycle().take(count).collect();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A folder of images, and a picture of 4 × 3 in it.
struct Folder {
    _home: TempDir,
    dir: PathBuf,
    picture: Vec<u8>,
}

impl Folder {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().canonicalize().unwrap().join("images");
        fs::create_dir(&dir).unwrap();
        let picture = png(4, 3);
        fs::write(dir.join("good"), &picture).unwrap();
        Self {
            _home: home,
            dir,
            picture,
        }
    }

    /// What a truthful executor says about its picture at this path.
    fn said(&self, path: impl AsRef<Path>) -> ImageRef {
        ImageRef {
            path: AbsolutePath::of_path(&self.dir.join(path)).unwrap(),
            format: ImageFormat::Png,
            width_px: 4,
            height_px: 3,
            byte_length: self.picture.len() as u64,
            sha256: Digest::of(&self.picture),
            scale: 1.0,
        }
    }

    fn check(&self, image: &ImageRef, expected: Result<(), FrameError>) {
        let seen = read(&self.dir, image);
        if let Ok(frame) = &seen {
            assert_eq!(frame.bytes, self.picture);
        }
        assert_eq!(seen.map(drop), expected, "{image:?}");
    }
}

fn broken(field: &str, reason: Reason) -> Result<(), FrameError> {
    Err(violation(field, reason))
}

/// Spec 4.8: only a regular file, reached without a link, below the folder. Nothing else is even waited for.
#[test]
fn only_a_regular_file_inside_is_read() {
    let folder = Folder::new();
    let dir = &folder.dir;
    let outside = dir.with_file_name("outside");
    fs::create_dir_all(dir.join("sub/deeper")).unwrap();
    fs::create_dir(&outside).unwrap();
    for path in [
        dir.join("sub/deeper/good"),
        outside.join("secret"),
        dir.join("original"),
    ] {
        fs::write(path, &folder.picture).unwrap();
    }
    symlink(outside.join("secret"), dir.join("link")).unwrap();
    symlink("good", dir.join("link_inside")).unwrap();
    symlink(&outside, dir.join("linked")).unwrap();
    symlink("/dev/zero", dir.join("device")).unwrap();
    fs::hard_link(dir.join("original"), outside.join("second_name")).unwrap();
    nix::unistd::mkfifo(&dir.join("pipe"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();

    folder.check(&folder.said("good"), Ok(()));
    folder.check(&folder.said("sub/deeper/good"), Ok(()));
    folder.check(&folder.said("gone"), Err(FrameError::Unreadable));
    folder.check(&folder.said("sub/gone/good"), Err(FrameError::Unreadable));
    let outsiders = [
        "link",
        "link_inside",
        "linked/secret",
        "device",
        "original",
        "sub",
        "sub/deeper",
        "pipe",
        "socket",
        "good/x",
        "",
    ];
    for path in outsiders {
        folder.check(
            &folder.said(path),
            broken("image.path", Reason::OutsideImageDir),
        );
    }
    for path in [
        outside.join("secret"),
        "/dev/zero".into(),
        "/etc/passwd".into(),
    ] {
        folder.check(
            &folder.said(path),
            broken("image.path", Reason::OutsideImageDir),
        );
    }
    // A folder whose name only begins like ours.
    let neighbour = dir.with_file_name("images2");
    fs::create_dir(&neighbour).unwrap();
    fs::write(neighbour.join("good"), &folder.picture).unwrap();
    folder.check(
        &folder.said(neighbour.join("good")),
        broken("image.path", Reason::OutsideImageDir),
    );
}

/// Spec 7 and 12.3 row 37: each field that describes the file is held to the file, and the one that is wrong is named.
#[test]
fn every_announced_fact_is_held_to_the_file() {
    let folder = Folder::new();
    let length = folder.picture.len() as u64;
    type Lie = fn(&mut ImageRef, u64);
    let lies: [(&str, Lie); 8] = [
        ("image.byteLength", |it, length| it.byte_length = length - 1),
        ("image.byteLength", |it, length| it.byte_length = length + 1),
        ("image.byteLength", |it, _| it.byte_length = 0),
        ("image.sha256", |it, _| it.sha256 = Digest::of(b"another")),
        ("image.format", |it, _| it.format = ImageFormat::Jpeg),
        ("image.widthPx", |it, _| it.width_px = 5),
        ("image.widthPx", |it, _| it.width_px = 0),
        ("image.heightPx", |it, _| it.height_px = 4),
    ];
    for (field, lie) in lies {
        let mut image = folder.said("good");
        lie(&mut image, length);
        folder.check(&image, broken(field, Reason::Mismatch));
    }
    let mut huge = folder.said("good");
    huge.byte_length = FRAME_MAX_BYTES + 1;
    folder.check(&huge, Err(FrameError::TooLarge));
}

/// Bytes whose length and hash are as said, and that are no picture of the announced format.
#[test]
fn what_is_no_picture_is_not_delivered() {
    let mut jpeg = vec![0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8, 0, 3, 0, 4, 1, 1, 0x11, 0];
    jpeg.extend([0; 20]);
    type Row = (
        &'static str,
        Vec<u8>,
        ImageFormat,
        Result<Uniformity, FrameError>,
    );
    let rows: [Row; 5] = [
        (
            "text",
            b"picture".to_vec(),
            ImageFormat::Png,
            Err(violation("image.format", Reason::Mismatch)),
        ),
        (
            "nothing",
            Vec::new(),
            ImageFormat::Png,
            Err(violation("image.format", Reason::Mismatch)),
        ),
        (
            "a signature alone",
            png(4, 3)[..8].to_vec(),
            ImageFormat::Png,
            Err(violation("image.format", Reason::Mismatch)),
        ),
        (
            "a jpeg as a png",
            jpeg.clone(),
            ImageFormat::Png,
            Err(violation("image.format", Reason::Mismatch)),
        ),
        ("a jpeg", jpeg, ImageFormat::Jpeg, Ok(Uniformity::Unknown)),
    ];
    for (name, bytes, format, expected) in rows {
        let folder = Folder::new();
        fs::write(folder.dir.join("other"), &bytes).unwrap();
        let image = ImageRef {
            format,
            byte_length: bytes.len() as u64,
            sha256: Digest::of(&bytes),
            ..folder.said("other")
        };
        assert_eq!(
            read(&folder.dir, &image).map(|frame| frame.uniformity),
            expected,
            "{name}"
        );
    }
}

/// A file that changes its length under the reader is noticed, whichever moment it chooses.
#[test]
fn a_file_that_grows_is_noticed() {
    let folder = Folder::new();
    let length = folder.picture.len() as u64;
    let path = folder.dir.join("good");
    let grow = || {
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"x").unwrap();
    };
    let mut file = File::open(&path).unwrap();
    assert_eq!(whole(&mut file, length).unwrap(), folder.picture);
    assert_eq!(still(&file, length), Ok(()));
    grow();
    assert_eq!(
        still(&file, length),
        broken("image.byteLength", Reason::Mismatch)
    );
    // Grown before the first byte was asked for: not one is read.
    let mut file = File::open(&path).unwrap();
    assert_eq!(
        whole(&mut file, length).map(drop),
        broken("image.byteLength", Reason::Mismatch)
    );
    // Grown between the question and the reading.
    let mut file = File::open(&path).unwrap();
    let length = length + 1;
    assert_eq!(still(&file, length), Ok(()));
    grow();
    let read = (&mut file)
        .take(length + 1)
        .read_to_end(&mut Vec::new())
        .unwrap() as u64;
    assert_eq!(read, length + 1, "the surplus byte shows");
}

#[test]
fn a_frame_shows_no_picture_in_a_log() {
    let folder = Folder::new();
    let frame = read(&folder.dir, &folder.said("good")).unwrap();
    let text = format!("{frame:?}");
    assert!(
        text.contains("length") && !text.contains("137, 80"),
        "{text}"
    );
}

/// Field reports C4 and C7: one color is a flag on a good picture.
#[tokio::test]
async fn an_empty_picture_is_delivered_and_flagged() {
    let folder = Folder::new();
    let varied = load(folder.dir.clone(), folder.said("good")).await.unwrap();
    assert!(!varied.uniform());
    let mut bytes = Vec::new();
    let writer = png::Encoder::new(&mut bytes, 4, 3).write_header();
    writer.unwrap().write_image_data(&[0; 12]).unwrap();
    fs::write(folder.dir.join("black"), &bytes).unwrap();
    let image = ImageRef {
        byte_length: bytes.len() as u64,
        sha256: Digest::of(&bytes),
        ..folder.said("black")
    };
    let black = load(folder.dir.clone(), image).await.unwrap();
    assert!(black.uniform());
    assert_eq!(black.bytes, bytes);
}

/// A picture above the budget is read for a compressor, and refused when nothing came of it.
#[test]
fn a_compressor_gets_verified_bytes() {
    struct Cut(std::sync::Mutex<usize>);
    impl Compressor for Cut {
        fn compress(&self, bytes: &[u8], format: ImageFormat) -> Option<Compressed> {
            *self.0.lock().unwrap() += 1;
            Some(Compressed {
                bytes: bytes[..1000].to_vec(),
                format,
            })
        }
    }
    let mut folder = Folder::new();
    folder
        .picture
        .resize(usize::try_from(FRAME_MAX_BYTES).unwrap() + 1, 0);
    fs::write(folder.dir.join("large"), &folder.picture).unwrap();
    let cut = Cut(std::sync::Mutex::new(0));
    let image = folder.said("large");
    let frame = read_compressed(&folder.dir, &image, &cut).unwrap();
    assert_eq!(frame.bytes.len(), 1000);
    assert_eq!(read(&folder.dir, &image), Err(FrameError::TooLarge));
    let mut lie = image.clone();
    lie.sha256 = Digest::of(b"another");
    assert_eq!(
        read_compressed(&folder.dir, &lie, &cut).map(drop),
        broken("image.sha256", Reason::Mismatch)
    );
    assert_eq!(
        *cut.0.lock().unwrap(),
        1,
        "what is not verified is not compressed"
    );
    let mut huge = image;
    huge.byte_length = SOURCE_MAX_BYTES + 1;
    assert_eq!(
        read_compressed(&folder.dir, &huge, &cut),
        Err(FrameError::TooLarge)
    );
}

/// Field report B1: a picture twice as large as its scale says is told from one that fits.
#[test]
fn pictures_fit_their_window_or_not() {
    let folder = Folder::new();
    let rows = [
        ("1x", (800, 600), (800.0, 600.0), 1.0, true),
        ("2x", (1600, 1200), (800.0, 600.0), 2.0, true),
        (
            "a claimed 1x that is 2x",
            (1600, 1200),
            (800.0, 600.0),
            1.0,
            false,
        ),
        (
            "a claimed 2x that is 1x",
            (800, 600),
            (800.0, 600.0),
            2.0,
            false,
        ),
        (
            "a measured scale",
            (1001, 601),
            (800.4, 480.6),
            1001.0 / 800.4,
            true,
        ),
        ("one pixel", (801, 601), (800.0, 600.0), 1.0, true),
        ("two pixels", (802, 600), (800.0, 600.0), 1.0, false),
        (
            "two pixels of height",
            (800, 602),
            (800.0, 600.0),
            1.0,
            false,
        ),
        (
            "narrow and high: the measure is coarse",
            (13, 1298),
            (10.4, 1000.0),
            1.25,
            true,
        ),
        (
            "coarser than the measure",
            (13, 1300),
            (10.4, 1000.0),
            1.25,
            false,
        ),
        ("a padded picture", (800, 700), (800.0, 600.0), 1.0, false),
        ("no scale", (800, 600), (800.0, 600.0), 0.0, false),
        (
            "a negative scale",
            (800, 600),
            (-800.0, -600.0),
            -1.0,
            false,
        ),
        ("no window", (0, 0), (0.0, 0.0), 1.0, false),
        (
            "an endless scale",
            (800, 600),
            (800.0, 600.0),
            f64::INFINITY,
            false,
        ),
    ];
    for (name, (width_px, height_px), (width, height), scale, fits) in rows {
        let image = ImageRef {
            width_px,
            height_px,
            scale,
            ..folder.said("good")
        };
        let bounds = ScreenRect::try_new(-40.0, 60.0, width, height).unwrap();
        let expected = if fits {
            Geometry::Consistent
        } else {
            Geometry::Inconsistent
        };
        assert_eq!(geometry(&image, bounds), expected, "{name}");
    }
}
