//! The program itself, from flags to exit code.

mod check;
mod fixtures;
mod inspect;
mod support;
