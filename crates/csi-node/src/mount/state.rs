//! The table: the layers at a path, and what brings it to the state that is asked for.

/// A layer at a path, compared with the device that should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The device, mounted for reading and writing or not.
    Ours {
        /// Of the layer, not of the file system.
        read_only: bool,
    },
    /// Another device, which this machine has.
    Foreign,
    /// A device that is gone.
    Stale,
}

/// What is done, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// So many layers are taken away from the top, whether or not something uses them.
    pub detach: usize,
    /// So many layers are taken away from the top, unless something uses them.
    pub unmount: usize,
    /// Then this.
    pub then: Then,
}

/// What is done at last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// What is there is right.
    #[default]
    Keep,
    /// Nothing is there: it is mounted.
    Mount,
    /// It is there, and becomes read-only: an earlier call did not get that far.
    RestrictToReading,
}

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Another device is mounted there.
    Foreign,
    /// It is mounted for reading alone, and writing is asked for.
    ReadOnly,
}

/// What makes of these layers (the topmost last) one layer of ours.
///
/// ```text
///   layers                     plan
///   none                       mount
///   ours                       keep (ro asked and rw there: restrict; rw asked and ro there: conflict)
///   ours, ours, ours           unmount all but one
///   stale …                    detach all, mount
///   ours, stale                detach the stale one, keep
///   stale, ours                ours hides it: unmount all, mount
///   foreign anywhere           conflict
/// ```
///
/// # Errors
/// What is there is not ours to take away.
pub fn plan(layers: &[Layer], read_only: bool) -> Result<Plan, Conflict> {
    if layers.contains(&Layer::Foreign) {
        return Err(Conflict::Foreign);
    }
    let stale = |layer: &Layer| *layer == Layer::Stale;
    let on_top = layers.iter().rev().take_while(|layer| stale(layer)).count();
    let below = layers.get(..layers.len() - on_top).unwrap_or_default();
    let mut plan = Plan {
        detach: on_top,
        ..Plan::default()
    };
    match below {
        [] => plan.then = Then::Mount,
        // A stale layer below is only reached through what is above.
        _ if below.iter().any(stale) => {
            plan.detach += below.len();
            plan.then = Then::Mount;
        }
        [Layer::Ours { read_only: first }, others @ ..] => {
            plan.unmount = others.len();
            plan.then = match (first, read_only) {
                (false, true) => Then::RestrictToReading,
                (true, false) => return Err(Conflict::ReadOnly),
                _ => Then::Keep,
            };
        }
        _ => return Err(Conflict::Foreign),
    }
    Ok(plan)
}
