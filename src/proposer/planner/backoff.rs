//! Exponential back-off: pauses drafting for 4 to 64 passes when it gains hardly anything.

/// The state of the back-off.
///
/// Each pause is twice as long as the one before it, up to a bound: if drafts never pay, hardly anything is
/// tried any more; if they begin to, that is found out soon after.
#[derive(Debug, Clone)]
pub(super) struct DraftBackoff {
    /// Decaying sums over the last passes, in seconds: the expected gain of drafts, and the time that the
    /// passes would have taken without drafts.
    gained: f64,
    passes: f64,
    /// Number of passes to be tried before drafts are judged.
    trial: usize,
    /// Number of passes left of this pause.
    left: usize,
    /// Length of the next pause.
    next: usize,
}

impl Default for DraftBackoff {
    fn default() -> Self {
        Self { gained: 0.0, passes: 0.0, trial: Self::FIRST_TRIAL, left: 0, next: Self::SHORTEST }
    }
}

impl DraftBackoff {
    /// Length of a pause, at first and at most.
    const SHORTEST: usize = 4;
    pub(super) const LONGEST: usize = 64;
    /// Least number of passes before the first pause, and between pauses.
    const FIRST_TRIAL: usize = 4;
    const TRIAL: usize = 2;
    /// Decay of the sums per pass: a window of about 20.
    const KEEP: f64 = 0.95;
    /// Shares of a pass: drafts must gain the first to be worth the trouble; the second makes the next pause
    /// a short one again.
    const WORTH: f64 = 0.02;
    const CLEAR: f64 = 0.05;

    /// Is drafting paused?
    pub(super) fn is_resting(&self) -> bool {
        self.left > 0
    }

    /// Counts a pass of the pause.
    pub(super) fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Records, in seconds, the expected gain of a draft of any length, and the time of the pass without it.
    pub(super) fn note(&mut self, gained: f64, pass: f64) {
        self.gained = Self::KEEP * self.gained + gained;
        self.passes = Self::KEEP * self.passes + pass;
        self.trial = self.trial.saturating_sub(1);
        if self.trial > 0 {
            return;
        }
        if self.gained < Self::WORTH * self.passes {
            let next = (2 * self.next).min(Self::LONGEST);
            *self = Self { left: self.next, next, trial: Self::TRIAL, ..Self::default() };
        } else if self.gained >= Self::CLEAR * self.passes {
            self.next = Self::SHORTEST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists the passes that have a draft, if drafts gain this time in each.
    fn awake(rest: &mut DraftBackoff, passes: usize, gained: f64) -> Vec<bool> {
        let pass = |_| {
            let awake = !rest.is_resting();
            if awake {
                rest.note(gained, 1.0)
            } else {
                rest.pass()
            }
            awake
        };
        (0..passes).map(pass).collect()
    }

    fn share(awake: &[bool]) -> f64 {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap());
        count(awake.iter().filter(|awake| **awake).count()) / count(awake.len())
    }

    #[test]
    fn drafting_that_never_pays_is_seldom_tried() {
        for gained in [0.0, 0.01, 0.019] {
            let mut rest = DraftBackoff::default();
            let first = awake(&mut rest, 100, gained);
            assert!(share(&first) < 0.13 && !first[4], "{first:?}");
            assert!(share(&awake(&mut rest, 1000, gained)) < 0.035);
        }
    }

    #[test]
    fn drafting_that_pays_is_never_paused() {
        for gained in [0.03, 0.1, 2.0] {
            assert!(awake(&mut DraftBackoff::default(), 1000, gained).iter().all(|awake| *awake));
        }
    }

    #[test]
    fn drafting_that_begins_to_pay_is_resumed() {
        let mut rest = DraftBackoff::default();
        awake(&mut rest, 1000, 0.0);
        let after = awake(&mut rest, 200, 0.5);
        let woken = after.iter().position(|awake| *awake).unwrap();
        assert!(woken <= DraftBackoff::LONGEST && after[woken..].iter().all(|awake| *awake), "{after:?}");
    }

    #[test]
    fn drafting_that_has_paid_is_paused_for_a_short_time_only() {
        // What gains hardly anything does not make the next rest a short one.
        for (gained, expected) in [(0.5, DraftBackoff::SHORTEST), (0.03, DraftBackoff::LONGEST)] {
            let mut rest = DraftBackoff::default();
            awake(&mut rest, 1000, 0.0);
            awake(&mut rest, 200, gained);
            assert!(!rest.is_resting());
            // Earlier gains are forgotten in time.
            let then = awake(&mut rest, 200, 0.0);
            let slept = then.iter().position(|awake| !*awake).unwrap();
            let length = then[slept..].iter().take_while(|awake| !**awake).count();
            assert_eq!(length, expected, "{gained}");
        }
    }
}
