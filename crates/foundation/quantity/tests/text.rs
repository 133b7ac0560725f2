//! Parsing and printing of quantities in usual notation.

use proptest::num::f64::{NORMAL, SUBNORMAL, ZERO};
use proptest::prelude::*;
use sweetspot_quantity::{
    Bytes, Celsius, Joules, Megahertz, Quantity, Ratio, Seconds, Watts, parse_bare,
};

fn round_trip<Q>(value: f64) -> Result<(), TestCaseError>
where
    Q: Quantity + std::fmt::Display + std::str::FromStr<Err: std::fmt::Debug> + std::fmt::Debug,
{
    let quantity = Q::from_base(value);
    let text = quantity.to_string();
    let back: Q = text.parse().expect("a printed quantity parses");
    prop_assert_eq!(back.base().to_bits(), value.to_bits(), "{}", text);
    Ok(())
}

proptest! {
    #[test]
    fn printed_quantities_parse_to_the_same_bits(value in prop_oneof![NORMAL | SUBNORMAL | ZERO, -1e6..1e6f64]) {
        round_trip::<Watts>(value)?;
        round_trip::<Joules>(value)?;
        round_trip::<Seconds>(value)?;
        round_trip::<Megahertz>(value)?;
        round_trip::<Ratio>(value)?;
        round_trip::<Celsius>(value)?;
        round_trip::<Bytes>(value)?;
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,12}") {
        let _ = text.parse::<Watts>();
        let _ = parse_bare::<Ratio>(&text);
    }

    #[test]
    fn the_unit_does_not_change_the_value(milliwatts in 0u32..1_000_000) {
        let exact: Watts = format!("{milliwatts}mW").parse().unwrap();
        let watts = format!("{}.{:03} W", milliwatts / 1000, milliwatts % 1000);
        prop_assert_eq!(exact, watts.parse().unwrap());
    }
}

#[test]
fn units_are_parsed_in_all_spellings() {
    assert_eq!("150W".parse(), Ok(Watts::new(150.0)));
    assert_eq!("0.15 kW".parse(), Ok(Watts::new(150.0)));
    assert_eq!("1.2kJ".parse(), Ok(Joules::new(1200.0)));
    assert_eq!("1 kWh".parse(), Ok(Joules::new(3.6e6)));
    assert_eq!("1380MHz".parse(), Ok(Megahertz::new(1380.0)));
    assert_eq!("1.38 GHz".parse(), Ok(Megahertz::new(1380.0)));
    assert_eq!("5%".parse(), Ok(Ratio::new(0.05)));
    assert_eq!("-5 %".parse(), Ok(Ratio::new(-0.05)));
    assert_eq!("0.05".parse(), Ok(Ratio::new(0.05)));
    assert_eq!("20 µs".parse(), Ok(Seconds::new(20e-6)));
    assert_eq!("2min".parse(), Ok(Seconds::new(120.0)));
    assert_eq!("16GiB".parse(), Ok(Bytes::new(17_179_869_184.0)));
    assert_eq!("1e3 W".parse(), Ok(Watts::new(1000.0)));
}

#[test]
fn bare_numbers_are_parsed_only_where_allowed() {
    assert!("150".parse::<Watts>().is_err());
    assert_eq!(parse_bare("150"), Ok(Watts::new(150.0)));
    assert_eq!(parse_bare("0.15kW"), Ok(Watts::new(150.0)));
}

#[test]
fn infinite_values_and_other_quantities_are_rejected() {
    for text in [
        "", "W", "NaN W", "inf W", "1e999 W", "1,5 W", "5 J", "5 w", "1.2.3 W", "--5 W",
    ] {
        assert!(text.parse::<Watts>().is_err(), "{text} was taken");
    }
    assert_eq!(
        "5 J".parse::<Watts>().unwrap_err().to_string(),
        "`5 J` is not a power: write a number and a unit (mW, W, kW, MW)"
    );
}

#[test]
fn quantities_print_in_usual_notation() {
    assert_eq!(Watts::new(150.0).to_string(), "150 W");
    assert_eq!(Joules::new(69_886.0).to_string(), "69.886 kJ");
    assert_eq!(format!("{:.1}", Joules::new(69_886.0)), "69.9 kJ");
    assert_eq!(Megahertz::new(1380.0).to_string(), "1380 MHz");
    assert_eq!(Ratio::new(0.05).to_string(), "5 %");
    assert_eq!(format!("{:.1}", Ratio::new(-0.2641)), "-26.4 %");
    assert_eq!(Seconds::new(0.02).to_string(), "20 ms");
    assert_eq!(Watts::ZERO.to_string(), "0 W");
    assert_eq!(format!("{:>8}", Watts::new(5.0)), "     5 W");
}
