"""The meaning of each function in a few words, for the documentation's table."""

from __future__ import annotations

__all__ = ["MEANINGS"]

_TEXT = """
ascii: code point of the first character
base64: bytes in base64
bit_length: number of bits
chr: character of a code point, modulo 256
concat: texts, or ARRAYs of one type, joined; NULL where one of them is NULL
concat_ws: texts joined with a separator between; NULLs are left out
contains: TRUE where the first text has the second one
crc32: CRC-32 checksum
decode: text of bytes in a character set
elt: the n-th of the texts that follow
encode: bytes of a text in a character set
endswith: TRUE where the first text ends with the second one
find_in_set: place of a text in a list with commas, from 1; 0 where it is missing
format_string: texts and numbers by a printf format
hex: hexadecimal digits
ilike: LIKE without regard to case
initcap: each word with a capital first letter
instr: place of the second text in the first one, from 1; 0 where it is missing
json_array_length: number of elements of a JSON array
json_object_keys: names of a JSON object
left: first n characters
length: number of characters, or of bytes
levenshtein: number of edits between two texts; -1 beyond the third argument
like: LIKE as a function
locate: place of the first text in the second one, from a start on
lower: small letters
lpad: text of a length, filled on the left
ltrim: text without blanks, or without other characters, on the left
luhn_check: TRUE where digits pass Luhn's check
mask: letters and digits replaced
md5: MD5 in hexadecimal
octet_length: number of bytes
overlay: text with a part replaced, from a place on
parse_url: part of a URL, or the value of a key of its query
regexp_count: number of matches of a pattern
regexp_extract: group of the first match; the empty text without a match
regexp_extract_all: group of each match
regexp_instr: place of the first match, from 1
regexp_replace: text with each match replaced
regexp_substr: first match; NULL without a match
repeat: text n times
replace: text with each occurrence replaced, or removed
reverse: characters, or elements of an ARRAY, backwards
right: last n characters
rlike: TRUE where a pattern is found
rpad: text of a length, filled on the right
rtrim: text without blanks, or without other characters, on the right
sha1: SHA-1 in hexadecimal
sha2: SHA-224, 256, 384 or 512 in hexadecimal
soundex: Soundex code
space: n blanks
split_part: n-th part between delimiters, from 1 or from the end
startswith: TRUE where the first text begins with the second one
substring: part from a place, counted from 1, or from the end
substring_index: part before the n-th delimiter
to_binary: bytes of a text: `'hex'`, `'utf-8'` or `'base64'`
translate: characters replaced one by one
trim: text without blanks, or without other characters, at both ends
try_to_binary: the same as to_binary
unbase64: bytes of base64
unhex: bytes of hexadecimal digits
upper: capital letters
url_decode: text of a URL's escapes
url_encode: text with a URL's escapes
abs: absolute value
acos: arc cosine
acosh: inverse hyperbolic cosine
asin: arc sine
asinh: inverse hyperbolic sine
atan: arc tangent
atan2: angle of a point (y, x)
atanh: inverse hyperbolic tangent
bin: binary digits
bit_count: number of bits that are 1
bit_get: bit at a place
bround: rounded half to even
cbrt: cube root
ceil: next whole number above
conv: digits from one base in another one
cosh: hyperbolic cosine
degrees: degrees of radians
e: Euler's number
exp: e to the power of a number
expm1: exp(x) - 1
factorial: n!, for 0 to 20
floor: next whole number below
format_number: number with separators and n decimals
hypot: length of a hypotenuse
isnan: TRUE for NaN
ln: natural logarithm
log: natural logarithm, or logarithm to a first base
log10: logarithm to base 10
log1p: ln(1 + x)
log2: logarithm to base 2
mod: remainder with the sign of the dividend
nanvl: second value where the first one is NaN
negative: number with its sign changed
nullifzero: NULL for 0
pi: the number pi
pmod: remainder that is not negative
positive: the number itself
pow: power
radians: radians of degrees
rint: nearest whole number, half to even
round: rounded half up
shiftleft: bits moved left
shiftright: bits moved right, with the sign
shiftrightunsigned: bits moved right, with zeros
sign: -1, 0 or 1
sinh: hyperbolic sine
sqrt: square root
tanh: hyperbolic tangent
to_number: DECIMAL of a text by a format
try_add: sum; NULL on overflow, as `+` here
try_divide: quotient; NULL for division by zero, as `/` here
try_mod: remainder; NULL for division by zero, as `%` here
try_multiply: product; NULL on overflow, as `*` here
try_subtract: difference; NULL on overflow, as `-` here
try_to_number: the same as to_number
width_bucket: number of the bucket between two bounds
zeroifnull: 0 for NULL
add_months: date n months later
date_add: date n days later
date_format: time written by a format
date_from_unix_date: date n days after 1970-01-01
date_part: field of a time or an interval
date_sub: date n days earlier
date_trunc: time cut to a unit
datediff: days from the second date to the first one
day: day of the month
dayname: short name of the weekday
dayofweek: 1 for Sunday to 7
dayofyear: 1 to 366
from_unixtime: text of seconds since 1970, by a format
from_utc_timestamp: time in UTC shown in a zone
hour: hour
last_day: last day of the month
make_date: date of year, month and day
make_dt_interval: interval of days, hours, minutes and seconds
make_timestamp: time of its parts
make_ym_interval: interval of years and months
minute: minute
month: month
monthname: short name of the month
months_between: months from the second time to the first one
next_day: next date with a weekday
quarter: 1 to 4
second: second
timestamp_micros: time of microseconds since 1970
timestamp_millis: time of milliseconds since 1970
timestamp_seconds: time of seconds since 1970
timestampadd: time n units later
timestampdiff: whole units from the first time to the second one
to_char: number, time or bytes written by a format
to_date: date of a text, by a format
to_timestamp: time of a text, by a format
to_utc_timestamp: time of a zone in UTC
to_varchar: the same as to_char
trunc: date cut to a unit
unix_date: days since 1970-01-01
unix_micros: microseconds since 1970
unix_millis: milliseconds since 1970
unix_seconds: seconds since 1970
unix_timestamp: seconds since 1970 of a text or a time
weekday: 0 for Monday to 6
weekofyear: ISO week
year: year
bigint: CAST to BIGINT
binary: CAST to BINARY
boolean: CAST to BOOLEAN
coalesce: first value that is not NULL
date: CAST to DATE
decimal: CAST to DECIMAL(10,0)
double: CAST to DOUBLE
equal_null: `<=>`: equality in which NULL equals NULL
float: CAST to FLOAT
greatest: greatest value; NULLs do not count
hash: Murmur3 hash
if: second value where the condition is TRUE, else the third one
int: CAST to INT
isnotnull: IS NOT NULL
isnull: IS NULL
least: least value; NULLs do not count
nullif: NULL where both values are equal, else the first one
nvl2: second value where the first one is not NULL, else the third one
smallint: CAST to SMALLINT
string: CAST to STRING
timestamp: CAST to TIMESTAMP
tinyint: CAST to TINYINT
xxhash64: xxHash64
array: ARRAY of values; an argument of other functions
array_append: ARRAY with a value behind
array_compact: ARRAY without NULLs
array_contains: TRUE where an element is the value; NULL where none is and an element is NULL
array_distinct: ARRAY without repetitions
array_except: elements of the first ARRAY that the second one lacks, without repetitions
array_insert: ARRAY with a value at a constant place
array_intersect: elements of both ARRAYs, without repetitions
array_join: elements as a text; NULLs are left out, or written as the third text
array_max: greatest element; NULLs do not count, NaN is the greatest
array_min: least element; NULLs do not count
array_position: place of a value, from 1; 0 where it is missing
array_prepend: ARRAY with a value in front
array_remove: ARRAY without a value
array_repeat: ARRAY of a value n times; n is a constant of up to 1,000
array_size: number of elements
array_sort: ARRAY in order, NULLs last; takes no lambda
array_union: elements of either ARRAY, without repetitions
arrays_overlap: TRUE where the ARRAYs have an element in common; either may be `array(value, …)`
arrays_zip: ARRAY of STRUCTs of the elements at each place; a field has the name of its column, or its place from 0
element_at: element from 1, or from the end by negative numbers; value of a MAP's key
exists: TRUE where the condition holds for an element; NULL where none decides and one is NULL
filter: elements for which the condition holds
flatten: ARRAY of ARRAYs as one; NULL where one of them is NULL
forall: TRUE where the condition holds for all elements
from_json: value of a JSON text by a constant schema ([JSON texts](#json-texts))
get: element, counted from 0
get_json_object: part of a JSON text; the path is a constant such as `'$.a[0].b'`
is_variant_null: TRUE for a `null` of JSON; never NULL
map: MAP of STRING keys and values; a NULL key, or a key that is there twice, makes NULL
map_concat: MAPs joined
map_contains_key: TRUE where the MAP has a key
map_entries: ARRAY of STRUCTs of `key` and `value`
map_filter: entries for which the condition holds
map_from_arrays: MAP of an ARRAY<STRING> of keys and an ARRAY of values; different lengths make NULL
map_from_entries: MAP of an ARRAY of STRUCTs
map_keys: ARRAY of the keys
map_values: ARRAY of the values
map_zip_with: MAP of the keys of both; a value that one of them lacks is NULL
named_struct: STRUCT with constant names
parse_json: VARIANT of a JSON text; NULL for a text that is none or has a field twice
reduce: value made step by step, of the type of the start; NULL for more than 10,000 elements
sequence: ARRAY of whole numbers between constants
size: number of elements or entries
slice: part of an ARRAY, from a place counted from 1, or from the end
sort_array: ARRAY in order, NULLs first; falling with FALSE, NULLs last
split: parts between matches of a constant pattern that does not match the empty text; a backslash escapes one sign
str_to_map: MAP of a text; delimiters are constants, `','` and `':'` without them
struct: STRUCT of values; names differ, and are `AS name`, the column's or `col1`, `col2`, …
to_json: JSON of a value with parts, none FLOAT; NULL fields are left out, a TIMESTAMP has milliseconds
transform: ARRAY of a value for each element; CAST the value where a constant decides its type
transform_keys: MAP with a key made for each entry
transform_values: MAP with a value made for each entry
variant_get: part of a VARIANT as a value of a type ([VARIANT](#variant)); NULL where the type does not fit
zip_with: ARRAY of a value for each pair of elements
approx_count_distinct: number of different values, exact here
avg: mean
bool_and: TRUE where all values are TRUE
bool_or: TRUE where a value is TRUE
count: number of matches, of values that are not NULL, or of different ones
first: value of the first match
last: value of the last match
max: greatest value
max_by: first argument where the second one is greatest
min: least value
min_by: first argument where the second one is least
stddev_pop: standard deviation of all values
stddev_samp: standard deviation of a sample
sum: sum
var_pop: variance of all values
var_samp: variance of a sample
"""

MEANINGS = dict(line.split(": ", 1) for line in _TEXT.strip().splitlines())
"""Meaning by the name under which a function is compiled."""
