//! The program itself, from flags to exit code.

mod check;
mod inspect;
mod support;
