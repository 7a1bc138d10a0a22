//! When not to draft at all: where what drafts gain is not worth what guessing and learning cost.

/// Passes for which nothing is guessed, as what drafts gained before was not worth it.
///
/// A rest is twice as long as the one before it, up to a bound: where drafts never pay, hardly anything is
/// tried any more; where they begin to, that is found out soon after.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    /// Sums over the last passes, in seconds: what drafts should have gained, what it took to guess and to
    /// learn, and what the passes took that there would have been without drafts.
    gained: f64,
    spent: f64,
    passes: f64,
    /// Passes to be tried before it is judged whether they were worth it.
    trial: usize,
    /// Passes that are yet to be rested.
    left: usize,
    /// How long the next rest is.
    next: usize,
}

impl Default for Rest {
    fn default() -> Self {
        Self { gained: 0.0, spent: 0.0, passes: 0.0, trial: Self::FIRST_TRIAL, left: 0, next: Self::SHORTEST }
    }
}

impl Rest {
    /// Passes of a rest, at first and at most.
    const SHORTEST: usize = 4;
    pub(super) const LONGEST: usize = 64;
    /// Passes before the first rest at the earliest, and between rests.
    const FIRST_TRIAL: usize = 4;
    const TRIAL: usize = 2;
    /// What the sums keep from one pass to the next: they look back on about 20.
    const KEEP: f64 = 0.95;
    /// The part of a pass that drafts must gain, beyond what they cost, to be worth the trouble; and the part
    /// that makes the next rest a short one again.
    const WORTH: f64 = 0.02;
    const CLEAR: f64 = 0.05;

    /// Is there to be no draft?
    pub(super) fn is_resting(&self) -> bool {
        self.left > 0
    }

    /// A pass goes by.
    pub(super) fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Notes what a draft, of whatever length, should gain, what it took to guess and learn, and what the
    /// pass would have taken without it, in seconds.
    pub(super) fn note(&mut self, gained: f64, spent: f64, pass: f64) {
        self.gained = Self::KEEP * self.gained + gained;
        self.spent = Self::KEEP * self.spent + spent;
        self.passes = Self::KEEP * self.passes + pass;
        self.trial = self.trial.saturating_sub(1);
        if self.trial > 0 {
            return;
        }
        let net = self.gained - self.spent;
        if net < Self::WORTH * self.passes {
            let next = (2 * self.next).min(Self::LONGEST);
            *self = Self { left: self.next, next, trial: Self::TRIAL, ..Self::default() };
        } else if net >= Self::CLEAR * self.passes {
            self.next = Self::SHORTEST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In which passes there is a draft, if drafts gain so much in each and take so much.
    fn awake(rest: &mut Rest, passes: usize, gained: f64, spent: f64) -> Vec<bool> {
        let pass = |_| {
            let awake = !rest.is_resting();
            if awake {
                rest.note(gained, spent, 1.0)
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
    fn what_never_pays_is_seldom_tried() {
        for (gained, spent) in [(0.0, 0.0), (0.0, 0.1), (0.1, 0.1), (0.05, 0.04)] {
            let mut rest = Rest::default();
            let first = awake(&mut rest, 100, gained, spent);
            assert!(share(&first) < 0.13 && !first[4], "{first:?}");
            assert!(share(&awake(&mut rest, 1000, gained, spent)) < 0.035);
        }
    }

    #[test]
    fn what_pays_is_never_left_out() {
        for (gained, spent) in [(0.03, 0.0), (0.2, 0.1), (3.0, 1.0)] {
            assert!(awake(&mut Rest::default(), 1000, gained, spent).iter().all(|awake| *awake));
        }
    }

    #[test]
    fn what_begins_to_pay_is_found_out() {
        let mut rest = Rest::default();
        awake(&mut rest, 1000, 0.0, 0.05);
        let after = awake(&mut rest, 200, 0.5, 0.05);
        let woken = after.iter().position(|awake| *awake).unwrap();
        assert!(woken <= Rest::LONGEST && after[woken..].iter().all(|awake| *awake), "{after:?}");
    }

    #[test]
    fn what_has_paid_is_given_up_for_a_short_time_only() {
        // What gains hardly more than it takes does not make the next rest a short one.
        for (gained, expected) in [(0.5, Rest::SHORTEST), (0.03, Rest::LONGEST)] {
            let mut rest = Rest::default();
            awake(&mut rest, 1000, 0.0, 0.05);
            awake(&mut rest, 200, gained, 0.0);
            assert!(!rest.is_resting());
            // So dear that it does not pay at once.
            let then = awake(&mut rest, 100, 0.0, 100.0);
            let slept = then.iter().position(|awake| !*awake).unwrap();
            let length = then[slept..].iter().take_while(|awake| !**awake).count();
            assert_eq!(length, expected, "{gained}");
        }
    }
}
