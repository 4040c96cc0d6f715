//! Table of plans: the layers at a path, and the steps to the wanted mount.

/// Layer at a path, compared with the device that should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The expected device.
    Ours {
        /// True if the layer is read-only; its file system may be writable.
        read_only: bool,
    },
    /// Another device of this machine.
    Foreign,
    /// A device that is gone.
    Stale,
}

/// Steps of a call, in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Number of layers to unmount from the top lazily, in use or not.
    pub detach: usize,
    /// Number of layers to unmount from the top after these; the call fails if one is in use.
    pub unmount: usize,
    /// Last step.
    pub then: Then,
}

/// Last step of a [`Plan`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// Keep the mount: its device and flags are as wanted.
    #[default]
    Keep,
    /// Mount the device: the path has no layer.
    Mount,
    /// Remount read-only: an earlier call ended between mount and remount.
    RestrictToReading,
}

/// Reason why the wanted state is not reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Another device is mounted at the path.
    Foreign,
    /// The device is mounted read-only, and the caller wants to write.
    ReadOnly,
}

/// Steps from these layers, topmost last, to one layer of the expected device.
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
/// [`Conflict`]: a layer that the driver must not unmount.
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
        // A stale layer below is only reachable by unmounting the layers above.
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
