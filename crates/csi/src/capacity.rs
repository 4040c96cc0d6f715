//! GetCapacity: what the quotas leave for volumes of a class.

use csi_spec::{GetCapacityRequest, GetCapacityResponse, context};
use grpc::{Code, Status};
use openstack::View;
use openstack::volume::VolumeType;

use crate::Options;
use crate::request::{self, Uses};
use crate::size;
use crate::zone;

/// The volumes that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// A name or an id; `None` for Cinder's default.
    pub volume_type: Option<String>,
    /// The zones of Cinder where they may be; none for any.
    pub zones: Vec<String>,
    pub uses: Uses,
}

/// What a cloud has for such volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes of all volumes together.
    pub left: i64,
    /// The largest volume in bytes, if there is a limit for each.
    pub most: Option<i64>,
}

impl Wanted {
    pub(crate) fn read(request: &GetCapacityRequest, options: &Options) -> Result<Self, Status> {
        let class = request::Class::read(&request.parameters)?;
        let uses = match request.volume_capabilities.as_slice() {
            [] => Uses::default(),
            some => request::uses(some)?,
        };
        let topology = request.accessible_topology.as_ref();
        let label = topology.and_then(|it| it.segments.get(context::ZONE));
        let labels: Vec<String> = label.cloned().into_iter().collect();
        Ok(Self {
            volume_type: class.volume_type,
            zones: request::zones(class.zone, &labels, options),
            uses,
        })
    }

    /// The type in a cloud; `None` if it has none of that name or id.
    pub(crate) fn found<'a>(&self, view: &'a View) -> Option<&'a VolumeType> {
        let wanted = self.volume_type.as_ref()?;
        let mut types = view.volume_types.iter();
        types
            .find(|it| it.id == *wanted || it.name == *wanted)
            .map(|it| &**it)
    }

    /// What a cloud has for these volumes, whose type there is `kind`.
    pub(crate) fn room(&self, kind: Option<&VolumeType>, view: &View) -> Room {
        let quota = |resource: &str| view.volume_quotas.get(resource).map(|it| &it.0);
        let left = |resource: &str| {
            let of_type = kind.and_then(|kind| quota(&format!("{resource}_{}", kind.name)));
            let all = [quota(resource), of_type];
            all.into_iter().flatten().filter_map(|it| it.left()).min()
        };
        let zones: Vec<&str> = view.volume_zones.iter().map(|it| &*it.0.name).collect();
        let has_zone = |wanted: &String| zone::meant(wanted, zones.iter().copied()).is_some();
        let nowhere =
            !self.zones.is_empty() && !zones.is_empty() && !self.zones.iter().any(has_zone);
        // A creation without a named type is refused, too.
        let is_shared = self.volume_type.is_some() && kind.is_some_and(VolumeType::is_multiattach);
        let none = nowhere
            || left("volumes") == Some(0)
            || (self.uses.several_nodes && !is_shared)
            || self.uses.contradiction().is_some();
        // No limit is the largest number.
        let left = match none {
            true => 0,
            false => left("gigabytes").map_or(i64::MAX, size::bytes),
        };
        let each = quota("per_volume_gigabytes").filter(|it| it.limit >= 0);
        Room {
            left,
            most: each.map(|it| size::bytes(it.limit).min(left)),
        }
    }

    /// The refusal of a type that no cloud has.
    pub(crate) fn unknown(&self) -> Status {
        let wanted = self.volume_type.as_deref().unwrap_or_default();
        let message = format!("there is no volume type {}", wanted.escape_debug());
        Status::new(Code::NotFound, message)
    }
}

impl Room {
    /// The answer for one of several clouds: that with the most room.
    pub(crate) fn answer(self) -> GetCapacityResponse {
        GetCapacityResponse {
            available_capacity: self.left,
            maximum_volume_size: self.most,
            minimum_volume_size: Some(size::GIB),
        }
    }
}
