//! Taints of the machines of a class.

use api::core::v1beta2::MachineTaint;

/// Returns the taints of class and topology. For the same key and effect, the topology's taint wins.
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
