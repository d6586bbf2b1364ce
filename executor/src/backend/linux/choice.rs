//! Choosing one child of a container, as a click on it does: rows, tabs and options of GTK.
//!
//! Containers add what is chosen to what was chosen before, where they hold several choices, and only a look afterwards tells
//! which do. A table of GTK 3 takes no children, only rows.

use maka_cu_protocol::sets::Path;

use super::bus::{CallError, ObjectRef};
use super::input::{Attempt, not_actionable, outcome};
use super::reader::{Core, SELECTION, TABLE};
use crate::backend::perform::{PerformError, Performed};

/// One child, in the words of its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// By its place among the children.
    Child(i32),
    /// By its row.
    Row(i32),
}

/// Chooses the child at this place, and it alone.
pub(super) async fn choose(
    attempt: &Attempt<'_>,
    container: &ObjectRef,
    core: &Core,
    place: usize,
) -> Result<Performed, PerformError> {
    let path = Path::AxSelect;
    let place = i32::try_from(place).map_err(|_| PerformError::NotActionable)?;
    let choice = if core.interfaces.table {
        let row = attempt
            .reader
            .call(container, TABLE, "GetRowAtIndex", &place);
        let row: i32 = row.await.map_err(not_actionable)?;
        // The heads of columns are children too.
        if row < 0 {
            return Err(PerformError::NotActionable);
        }
        Choice::Row(row)
    } else {
        Choice::Child(place)
    };
    let done = outcome(path, add(attempt, container, choice).await)?;
    if !holds_several(attempt, container, choice).await {
        return Ok(done);
    }
    let cleared = attempt
        .send(container, SELECTION, "ClearSelection", &())
        .await;
    let alone = match cleared {
        Ok(true) => add(attempt, container, choice).await,
        other => other,
    };
    match alone {
        Ok(true) => Ok(done),
        // It is chosen, or was, and others may be.
        Ok(false) | Err(_) => Err(PerformError::Unknown { path }),
    }
}

async fn add(
    attempt: &Attempt<'_>,
    container: &ObjectRef,
    choice: Choice,
) -> Result<bool, CallError> {
    match choice {
        Choice::Child(place) => {
            attempt
                .send(container, SELECTION, "SelectChild", &place)
                .await
        }
        Choice::Row(row) => {
            attempt
                .send(container, TABLE, "AddRowSelection", &row)
                .await
        }
    }
}

/// Whether more than this one is chosen now. A container that does not tell is left as it is.
async fn holds_several(attempt: &Attempt<'_>, container: &ObjectRef, choice: Choice) -> bool {
    let reader = &attempt.reader;
    match choice {
        Choice::Child(_) => {
            let count = reader
                .number(container, SELECTION, "NSelectedChildren")
                .await;
            count.is_ok_and(|count| count > 1)
        }
        Choice::Row(_) => {
            let rows = reader.call::<_, Vec<i32>>(container, TABLE, "GetSelectedRows", &());
            rows.await.is_ok_and(|rows| rows.len() > 1)
        }
    }
}
