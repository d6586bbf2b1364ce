//! Tests that need an engine, in one binary because it takes long to link.

// The same facts that the floor's own tests hold against their tables.
mod capturing;
#[path = "../../floor/tests/corpus/mod.rs"]
mod corpus;
mod differential;
mod guest;
mod hostile;
mod judging;
mod loading;
mod logging;
mod proving;
mod rotating;
mod support;
