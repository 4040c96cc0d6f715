use std::time::Duration;

use super::Work;

#[test]
fn memory_is_returned_once_after_each_work_and_never_in_the_middle() {
    let mut work = Work::default();
    // Processor time at each look, in milliseconds, and whether memory is returned then.
    for (time, over) in [
        (0, false),
        (900, false),
        (2900, false),
        (4700, false),
        (4800, true),
        (4820, false),
        (5000, false),
        (5100, false),
        // Little work adds up.
        (5300, false),
        (5500, false),
        (5700, false),
        (5900, true),
        (5901, false),
    ] {
        let time_of_processor = Duration::from_millis(time);
        assert_eq!(work.is_over(time_of_processor), over, "at {time} ms");
    }
}
