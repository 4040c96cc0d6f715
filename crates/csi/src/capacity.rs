//! GetCapacity: the rest of the quotas, for volumes of a StorageClass.

use csi_spec::{GetCapacityRequest, GetCapacityResponse, context};
use grpc::{Code, Status};
use openstack::View;
use openstack::volume::VolumeType;

use crate::Options;
use crate::request::{self, Uses};
use crate::size;
use crate::zone;

/// Properties of the volumes in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Name or id of the volume type; `None` for Cinder's default.
    pub volume_type: Option<String>,
    /// Candidate zones of Cinder; empty for any zone.
    pub zones: Vec<String>,
    pub uses: Uses,
}

/// Capacity of a cloud for [`Wanted`] volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Bytes left for all volumes together; [`i64::MAX`] without a quota.
    pub left: i64,
    /// Largest size of one volume in bytes; `None` without such a quota.
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

    /// Volume type in a cloud; `None` if no type has the name or id.
    pub(crate) fn found<'a>(&self, view: &'a View) -> Option<&'a VolumeType> {
        let wanted = self.volume_type.as_ref()?;
        let mut types = view.volume_types.iter();
        types
            .find(|it| it.id == *wanted || it.name == *wanted)
            .map(|it| &**it)
    }

    /// [`Room`] in a cloud, where `kind` is the volume type. No room if no zone fits, or if a creation would be
    /// refused.
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
        // Shared volumes without a named type are refused by a creation as well.
        let is_shared = self.volume_type.is_some() && kind.is_some_and(VolumeType::is_multiattach);
        let none = nowhere
            || left("volumes") == Some(0)
            || (self.uses.several_nodes && !is_shared)
            || self.uses.contradiction().is_some();
        // Without a quota, the largest number.
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

    /// NOT_FOUND for a type that no cloud has.
    pub(crate) fn unknown(&self) -> Status {
        let wanted = self.volume_type.as_deref().unwrap_or_default();
        let message = format!("there is no volume type {}", wanted.escape_debug());
        Status::new(Code::NotFound, message)
    }
}

impl Room {
    /// [`GetCapacityResponse`], for the cloud with the most room.
    pub(crate) fn answer(self) -> GetCapacityResponse {
        GetCapacityResponse {
            available_capacity: self.left,
            maximum_volume_size: self.most,
            minimum_volume_size: Some(size::GIB),
        }
    }
}
