import type { ConformanceCase } from './cel-conformance.ts';

/** Why expressions do not pass test cases of the CEL conformance suite. */

type Applies = (one: ConformanceCase) => boolean;

const inSection =
  (section: string): Applies =>
  (one) =>
    one.section === section;
const named =
  (...names: readonly string[]): Applies =>
  (one) =>
    names.includes(one.name);
/** @param cases as `section/group/name` */
const exactly =
  (...cases: readonly string[]): Applies =>
  ({ section, group, name }) =>
    cases.includes(`${section}/${group}/${name}`);
const written =
  (pattern: RegExp): Applies =>
  ({ expression }) =>
    pattern.test(expression);

/** The first reason that applies counts. */
const reasons: readonly (readonly [reason: string, applies: Applies])[] = [
  ['no `cel.block`, which only optimizers write', written(/\bcel\.(block|index|iterVar)\(/)],
  ['no optional values: use `default` and `omit`', written(/\boptional(\.|_type)|\.\?|[[{,(]\s*\?/)],
  ['no enums', (one) => one.usesEnums || /Enum/.test(one.expression)],
  [
    'no Protocol Buffers',
    (one) =>
      one.usesMessages ||
      /\b[A-Z]\w*\s*\{|\bgoogle\.protobuf\.|\bmsg\.|TestAllTypes|\bproto\.|`cel\.expr/.test(one.expression),
  ],
  ['no `base64.encode` or `base64.decode`: use `base64(…)`', written(/\bbase64\.(en|de)code/)],
  ['no macros with two variables: use `entries(…)`', inSection('macros2')],
  ['no functions of `math`', written(/\bmath\./)],
  ['no `strings.quote`: use `json(…)` or `shellQuote(…)`', written(/\bstrings\.quote\(/)],
  ['no containers, and no variables with dots in their names', (one) => one.usesQualifiedNames],
  [
    'no raw bytes such as `br"…"`: write `bytes(r"…")`',
    exactly(
      'parse/bytes_literals/raw_single_quoted_escapes',
      'parse/bytes_literals/raw_double_quoted_escapes',
      'parse/bytes_literals/raw_triple_single_quoted_escapes',
      'parse/bytes_literals/raw_triple_double_quoted_escapes',
      'parse/bytes_literals/upper_raw_single_quoted_escapes',
      'parse/bytes_literals/upper_raw_double_quoted_escapes',
      'parse/bytes_literals/upper_raw_triple_single_quoted_escapes',
      'parse/bytes_literals/upper_raw_triple_double_quoted_escapes',
    ),
  ],
  ['no names in backticks: write `map["name"]`', written(/`/)],
  ['no functions that a test case declares', written(/\b(fn|tuple|f_unknown)\(|\ba\.[a-z]+\(\)/)],
  [
    'types are checked when a module is uploaded, and these cases rely on types that are not checked',
    (one) => one.isRefused && one.disablesCheck,
  ],
  [
    '`has` needs the key of a name, not of a map in place',
    exactly('fields/map_has/has', 'fields/map_has/has_not', 'fields/map_has/has_empty'),
  ],
  ['a number begins with a digit: `0.99`', exactly('comparisons/gt_literal/not_gt_double')],
  [
    'in lists, maps, and `in`, a `uint` equals no other number',
    (one) => one.group === 'in' || named('eq_list_mixed_type_numbers', 'eq_map_mixed_type_numbers')(one),
  ],
  ['a `uint` is not the index of a list: write `int(…)`', named('zero_based_uint')],
  ['the smallest `int` may be written as a double', named('double_int_min_range')],
  [
    'an int and a double are compared as doubles, which are not exact beyond 2^53',
    exactly(
      'comparisons/lt_literal/not_lt_dyn_int_big_lossy_double',
      'comparisons/gt_literal/not_gt_dyn_big_double_int',
      'comparisons/lte_literal/lte_dyn_big_double_int',
      'comparisons/gte_literal/gte_dyn_int_big_lossy_double',
    ),
  ],
  ['keys of a map may be doubles', named('map_key_float')],
  [
    'of equal keys of a map, the last one counts',
    exactly(
      'fields/qualified_identifier_resolution/map_value_repeat_key',
      'fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous',
    ),
  ],
  ['the type of `null` is `null`', exactly('conversions/type/null_type', 'conversions/type/null_type_denotation')],
  ['bytes that are not UTF-8 become U+FFFD', named('bytes_invalid')],
  ['a macro reads the keys of a map in place as text', named('map_one')],
  ['`%s` writes no types', named('type() support for string')],
  ['halves are rounded up', named('format_%f_halfway_truncate_to_nearest_even')],
  [
    'times have milliseconds',
    exactly(
      'timestamps/timestamp_conversions/toString_timestamp_nanos',
      'timestamps/timestamp_arithmetic/add_time_to_duration_nanos_positive',
      'timestamps/timestamp_range/add_duration_nanos_over',
    ),
  ],
  ['an offset of a time zone needs its sign: `+02:00`', exactly('timestamps/timestamp_selectors_tz/getHours')],
  ['a duration is added to a time, not a time to a duration', named('add_time_to_duration')],
  [
    'times may differ by more than 292 years',
    exactly('timestamps/timestamp_range/sub_time_duration_over', 'timestamps/timestamp_range/sub_time_duration_under'),
  ],
  [
    'an empty list has no known type of elements',
    exactly(
      'macros/all/list_empty',
      'type_deductions/flexible_type_parameter_assignment/list_parameter',
      'type_deductions/flexible_type_parameter_assignment/list_parameter_order_independent',
      'type_deductions/flexible_type_parameter_assignment/unconstrained_type_var_as_dyn',
    ),
  ],
];

/** Returns why expressions do not pass a test case; undefined if no reason is known. */
export const reasonOf = (one: ConformanceCase): string | undefined => reasons.find(([, applies]) => applies(one))?.[0];

/** Returns the reasons that apply to none of the test cases. */
export const unusedReasons = (failed: readonly ConformanceCase[]): string[] => {
  const used = new Set(failed.map(reasonOf));
  return reasons.flatMap(([reason]) => (used.has(reason) ? [] : [reason]));
};
