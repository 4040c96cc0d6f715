//! Taints of the machines of a class.

use api::core::v1beta2::MachineTaint;

/// The taints of a class and of a topology. Of those with the same key and effect, the topology's is taken.
pub(super) fn combined(
    topology: Option<&Vec<MachineTaint>>,
    class: Option<&Vec<MachineTaint>>,
) -> Vec<MachineTaint> {
    let of_topology = topology.into_iter().flatten();
    let same = |a: &MachineTaint, b: &MachineTaint| a.key == b.key && a.effect == b.effect;
    let overridden = |taint: &MachineTaint| of_topology.clone().any(|it| same(it, taint));
    let of_class = class.into_iter().flatten().filter(|it| !overridden(it));
    of_class.chain(of_topology.clone()).cloned().collect()
}

#[cfg(test)]
mod tests;
