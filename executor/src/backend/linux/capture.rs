//! Pixels of one window, right also while it is covered, and of the screen.
//!
//! The Composite extension keeps a redirected window's pixels off screen and complete. Right after redirection a covered
//! window has nothing there until its program has painted again, so windows are redirected when they are first looked
//! at and stay so; a capture that comes too early waits for the Damage that tells of the painting.
//!
//! INVARIANT: a Damage exists only while a capture waits for it. Its reports arrive whether or not anybody takes them, so one
//! that was kept would let a window that paints all the time fill the memory.

use std::thread;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event;
use x11rb::protocol::composite::{ConnectionExt as _, Redirect};
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xproto::{
    ConnectionExt as _, GetImageReply, ImageFormat, ImageOrder, MapState, VisualClass,
};

use super::display::{Area, Screen, unreadable};
use crate::backend::bitmap::{Bitmap, PixelLayout};
use crate::backend::error::BackendError;

/// After the first painting no further one for this long means that the window is complete.
const PAINT_QUIET: Duration = Duration::from_millis(40);
/// A program that has not painted by then does not paint because nothing was missing, or hangs. Measured: 80 ms.
const PAINT_LIMIT_COVERED: Duration = Duration::from_millis(300);
/// An uncovered window's pixels were copied by the server at redirection, so there is little to wait for.
const PAINT_LIMIT: Duration = Duration::from_millis(60);
const POLL: Duration = Duration::from_millis(4);

/// A window whose pixels are kept off screen because of us.
#[derive(Debug)]
pub(super) struct Redirection {
    since: Instant,
    /// The first painting is over, or was waited for long enough.
    complete: bool,
}

impl Screen {
    /// Starts keeping the window's pixels, if that is not done already.
    pub(super) fn redirect(&mut self, window: u32) -> Result<(), ReplyError> {
        if self.redirected.contains_key(&window) || !self.extensions.composite {
            return Ok(());
        }
        // Windows that are gone took their redirection with them; ids are recycled, so the record must go too.
        let gone: Vec<u32> = self
            .redirected
            .keys()
            .copied()
            .filter(|id| {
                !self
                    .connection
                    .get_geometry(*id)
                    .is_ok_and(|cookie| cookie.reply().is_ok())
            })
            .collect();
        for id in gone {
            self.redirected.remove(&id);
        }
        match self
            .connection
            .composite_redirect_window(window, Redirect::AUTOMATIC)?
            .check()
        {
            // An X error: a compositing manager redirects it already, which serves as well, or it is gone, which the
            // capture will notice.
            Ok(()) | Err(ReplyError::X11Error(_)) => {}
            Err(error @ ReplyError::ConnectionError(_)) => return Err(error),
        }
        self.redirected.insert(
            window,
            Redirection {
                since: Instant::now(),
                complete: false,
            },
        );
        Ok(())
    }

    /// The window's own pixels. `covered` tells whether anything lies above it.
    pub(super) fn capture_window(
        &mut self,
        window: u32,
        covered: bool,
        give_up: Instant,
    ) -> Result<Bitmap, BackendError> {
        if !self.extensions.composite {
            return Err(BackendError::CaptureFailed);
        }
        self.redirect(window).map_err(unreadable)?;
        self.wait_for_painting(window, covered, give_up)?;
        let attributes = self
            .connection
            .get_window_attributes(window)
            .map_err(unreadable)?
            .reply();
        let attributes = attributes.map_err(|error| match error {
            ReplyError::X11Error(_) => BackendError::WindowGone,
            error @ ReplyError::ConnectionError(_) => unreadable(error),
        })?;
        // A minimised window has no pixels anywhere.
        if attributes.map_state != MapState::VIEWABLE {
            return Err(BackendError::CaptureFailed);
        }
        self.check_visual(attributes.visual)?;
        let pixmap = self
            .connection
            .generate_id()
            .map_err(|_| BackendError::CaptureFailed)?;
        // Named anew each time: a pixmap belongs to one size of the window.
        self.connection
            .composite_name_window_pixmap(window, pixmap)
            .map_err(unreadable)?
            .check()
            .map_err(unreadable)?;
        let image = self.pixmap_image(window, pixmap);
        self.connection.free_pixmap(pixmap).map_err(unreadable)?;
        self.connection.flush().map_err(unreadable)?;
        image
    }

    fn pixmap_image(&self, window: u32, pixmap: u32) -> Result<Bitmap, BackendError> {
        let border = self
            .connection
            .get_geometry(window)
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?
            .border_width;
        let size = self
            .connection
            .get_geometry(pixmap)
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        let inner = |side: u16| {
            side.checked_sub(border * 2)
                .filter(|side| *side > 0)
                .ok_or(BackendError::CaptureFailed)
        };
        let (width, height) = (inner(size.width)?, inner(size.height)?);
        let offset = i16::try_from(border).map_err(|_| BackendError::CaptureFailed)?;
        let image = self
            .connection
            .get_image(
                ImageFormat::Z_PIXMAP,
                pixmap,
                offset,
                offset,
                width,
                height,
                u32::MAX,
            )
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        self.to_bitmap(&image, width.into(), height.into())
    }

    /// What the screen shows in this area of the root window.
    pub(super) fn capture_screen(&self, area: Area) -> Result<Bitmap, BackendError> {
        let out_of_range = |_| BackendError::CaptureFailed;
        let image = self
            .connection
            .get_image(
                ImageFormat::Z_PIXMAP,
                self.root,
                i16::try_from(area.x).map_err(out_of_range)?,
                i16::try_from(area.y).map_err(out_of_range)?,
                u16::try_from(area.width).map_err(out_of_range)?,
                u16::try_from(area.height).map_err(out_of_range)?,
                u32::MAX,
            )
            .map_err(unreadable)?
            .reply()
            .map_err(unreadable)?;
        self.to_bitmap(&image, area.width, area.height)
    }

    /// Waits until the first painting after the redirection is over, if it may not be.
    fn wait_for_painting(
        &mut self,
        window: u32,
        covered: bool,
        give_up: Instant,
    ) -> Result<(), BackendError> {
        let Some(redirection) = self.redirected.get_mut(&window) else {
            return Ok(());
        };
        if std::mem::replace(&mut redirection.complete, true) || !self.extensions.damage {
            return Ok(());
        }
        let limit = if covered {
            PAINT_LIMIT_COVERED
        } else {
            PAINT_LIMIT
        };
        let until = give_up.min(redirection.since + limit);
        if Instant::now() >= until {
            return Ok(());
        }
        let damage = self
            .connection
            .generate_id()
            .map_err(|_| BackendError::CaptureFailed)?;
        self.connection
            .damage_create(damage, window, ReportLevel::RAW_RECTANGLES)
            .map_err(unreadable)?;
        let waited = self.wait_for_damage(window, until);
        self.connection.damage_destroy(damage).map_err(unreadable)?;
        waited.map_err(unreadable)
    }

    /// Waits until the window was painted and then left alone for a moment, or until the instant.
    fn wait_for_damage(&self, window: u32, until: Instant) -> Result<(), ConnectionError> {
        self.connection.flush()?;
        let mut painted: Option<Instant> = None;
        loop {
            while let Some(event) = self.connection.poll_for_event()? {
                if let Event::DamageNotify(notify) = event
                    && notify.drawable == window
                {
                    painted = Some(Instant::now());
                }
            }
            let quiet = painted.is_some_and(|painted| painted.elapsed() >= PAINT_QUIET);
            if quiet || Instant::now() >= until {
                return Ok(());
            }
            thread::sleep(POLL);
        }
    }

    /// Only what is decoded below: 8 bits each of red, green and blue in the usual places.
    fn check_visual(&self, visual: u32) -> Result<(), BackendError> {
        let usual = self
            .connection
            .setup()
            .roots
            .iter()
            .flat_map(|root| &root.allowed_depths)
            .any(|depth| {
                depth.visuals.iter().any(|one| {
                    one.visual_id == visual
                        && one.class == VisualClass::TRUE_COLOR
                        && (one.red_mask, one.green_mask, one.blue_mask)
                            == (0x00ff_0000, 0x0000_ff00, 0x0000_00ff)
                })
            });
        if usual {
            Ok(())
        } else {
            Err(BackendError::CaptureFailed)
        }
    }

    fn to_bitmap(
        &self,
        image: &GetImageReply,
        width: u32,
        height: u32,
    ) -> Result<Bitmap, BackendError> {
        let setup = self.connection.setup();
        let four_bytes = setup
            .pixmap_formats
            .iter()
            .any(|format| format.depth == image.depth && format.bits_per_pixel == 32);
        if !matches!(image.depth, 24 | 32) || !four_bytes {
            return Err(BackendError::CaptureFailed);
        }
        let pixels = to_rgb(&image.data, setup.image_byte_order == ImageOrder::MSB_FIRST);
        Bitmap::try_new(width, height, PixelLayout::Rgb8, pixels).ok_or(BackendError::CaptureFailed)
    }
}

/// Drops the fourth byte. In a window of depth 32 it is an alpha that no one composes here, and a picture with holes
/// would show less than the person sees.
fn to_rgb(data: &[u8], big_endian: bool) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(data.len() / 4 * 3);
    for pixel in data.chunks_exact(4) {
        let rgb = if big_endian {
            [pixel[1], pixel[2], pixel[3]]
        } else {
            [pixel[2], pixel[1], pixel[0]]
        };
        pixels.extend_from_slice(&rgb);
    }
    pixels
}

#[cfg(test)]
mod tests {
    use x11rb::protocol::xproto::{CreateWindowAux, WindowClass};
    use x11rb::rust_connection::RustConnection;

    use super::super::rerun::inside;
    use super::*;

    /// Waits until the server has done what was asked, and until what it sent meanwhile is here.
    fn synchronise(connection: &RustConnection) {
        connection.get_input_focus().unwrap().reply().unwrap();
    }

    fn paint(painter: &RustConnection, window: u32) {
        for _ in 0..200 {
            painter.clear_area(false, window, 0, 0, 10, 10).unwrap();
        }
        synchronise(painter);
    }

    /// However much a window paints that is observed without a picture, nothing piles up on the connection.
    #[test]
    fn a_window_that_paints_leaves_no_events_behind() {
        let name = concat!(
            module_path!(),
            "::a_window_that_paints_leaves_no_events_behind"
        );
        inside(name.split_once("::").unwrap().1, || {
            let mut screen = Screen::connect().unwrap();
            let (painter, _) = x11rb::connect(None).unwrap();
            let window = painter.generate_id().unwrap();
            let aux = CreateWindowAux::new()
                .override_redirect(1)
                .background_pixel(0x00ff_0000);
            let (root, class) = (screen.root, WindowClass::INPUT_OUTPUT);
            painter
                .create_window(0, window, root, 5, 5, 50, 40, 0, class, 0, &aux)
                .unwrap();
            painter.map_window(window).unwrap();
            synchronise(&painter);

            screen.redirect(window).unwrap();
            synchronise(&screen.connection);
            paint(&painter, window);
            synchronise(&screen.connection);
            assert!(screen.connection.poll_for_event().unwrap().is_none());

            let give_up = Instant::now() + Duration::from_secs(30);
            let picture = screen.capture_window(window, true, give_up).unwrap();
            assert_eq!((picture.width(), picture.height()), (50, 40));
            assert_eq!(picture.pixels()[..3], [255, 0, 0]);
            paint(&painter, window);
            synchronise(&screen.connection);
            screen.drop_events().unwrap();
            paint(&painter, window);
            synchronise(&screen.connection);
            assert!(screen.connection.poll_for_event().unwrap().is_none());
        });
    }

    #[test]
    fn pixels_lose_their_fourth_byte() {
        assert_eq!(
            to_rgb(&[3, 2, 1, 0, 6, 5, 4, 255], false),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(to_rgb(&[0, 1, 2, 3], true), [1, 2, 3]);
        assert_eq!(to_rgb(&[1, 2, 3], false), Vec::<u8>::new());
    }
}
