//! Dates as `strftime` writes them, in UTC.

/// The names of months and, below, of weekdays in the C locale.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// The seconds of a day.
const DAY: u64 = 86_400;

/// A moment of the Gregorian calendar.
struct CalendarMoment {
    year: u64,
    /// The month of the year, from 1.
    month: u64,
    day: u64,
    /// The day of the year, from 1.
    day_of_year: u64,
    /// The day of the week; Sunday is 0.
    weekday: u64,
    seconds: u64,
}

impl CalendarMoment {
    /// The moment `unix` seconds after the beginning of 1970. Days are counted from 1 March of the year 0, by
    /// eras of 400 years.
    fn of(unix: u64) -> Self {
        let days = unix / DAY + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let (day, month) =
            (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let begun = before.iter().zip(1..).find(|&(_, number)| number == month).map_or(0, |(days, _)| *days);
        let day_of_year = begun + day + u64::from(is_leap && month > 2);
        Self { year, month, day, day_of_year, weekday: (unix / DAY + 4) % 7, seconds: unix % DAY }
    }
}

/// Formats the moment `unix` seconds after the beginning of 1970. Unknown directives stay as they are.
pub(super) fn strftime(unix: u64, format: &str) -> String {
    let moment = CalendarMoment::of(unix);
    let (hour, minute, second) = (moment.seconds / 3600, moment.seconds / 60 % 60, moment.seconds % 60);
    let name = |names: &[&'static str], index: u64| {
        usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
    };
    let (month, weekday) = (name(&MONTHS, moment.month - 1), name(&DAYS, moment.weekday));
    let hour_of_twelve = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = rest.next();
        let is_plain = directive == Some('-');
        if is_plain {
            directive = rest.next();
        }
        let two = |number: u64| if is_plain { number.to_string() } else { format!("{number:02}") };
        match directive {
            Some('Y') => out.push_str(&moment.year.to_string()),
            Some('y') => out.push_str(&two(moment.year % 100)),
            Some('m') => out.push_str(&two(moment.month)),
            Some('d') => out.push_str(&two(moment.day)),
            Some('e') => out.push_str(&format!("{:2}", moment.day)),
            Some('j') => out.push_str(&format!("{:03}", moment.day_of_year)),
            Some('B') => out.push_str(month),
            Some('b' | 'h') => out.push_str(&month[..3]),
            Some('A') => out.push_str(weekday),
            Some('a') => out.push_str(&weekday[..3]),
            Some('H') => out.push_str(&two(hour)),
            Some('I') => out.push_str(&two(hour_of_twelve)),
            Some('M') => out.push_str(&two(minute)),
            Some('S') => out.push_str(&two(second)),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('F') => {
                out.push_str(&format!("{}-{:02}-{:02}", moment.year, moment.month, moment.day));
            }
            Some('T') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('%') => out.push('%'),
            other => {
                out.push('%');
                out.extend(is_plain.then_some('-'));
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix, all) in [
            (0, "1970-01-01 Thu 001"),
            (951_782_400, "2000-02-29 Tue 060"),
            (1_721_952_000, "2024-07-26 Fri 208"),
            (1_735_603_200, "2024-12-31 Tue 366"),
            (4_107_542_400, "2100-03-01 Mon 060"),
        ] {
            assert_eq!(strftime(unix, "%F %a %j"), all);
        }
        let text =
            strftime(1_721_952_000 + 13 * 3600 + 5 * 60 + 9, "%d %b %Y, %A %-d %B %y %H:%M:%S %I %p %% %Q");
        assert_eq!(text, "26 Jul 2024, Friday 26 July 24 13:05:09 01 PM % %Q");
        assert_eq!(strftime(DAY * 2, "%-d %e %-m %T%"), "3  3 1 00:00:00%");
    }
}
