use super::*;

#[test]
fn a_former_set_creates_nothing_until_it_is_current_again() {
    let mut set = MachineSet::new("demo-md-0-x2b4c", MachineSetSpec::default());
    let value = |set: &MachineSet| set.annotations().get(DISABLE_CREATE).cloned();
    forbid_creation(&mut set, false);
    assert_eq!(value(&set), None);
    forbid_creation(&mut set, true);
    assert_eq!(value(&set).as_deref(), Some("true"));
    let deployment = MachineDeployment::new("demo-md-0", Default::default());
    conform(&mut set, &deployment, "x2b4c");
    assert_eq!(value(&set).as_deref(), Some("false"));
}
