/** A function, method, or macro of CEL itself. */
export interface StandardFunction {
  readonly name: string;
  /** The signature for readers. Methods begin with their receiver, such as `text.trim()`. */
  readonly form: string;
  readonly about: string;
}

const times = [
  'getFullYear',
  'getMonth',
  'getDate',
  'getDayOfMonth',
  'getDayOfWeek',
  'getDayOfYear',
  'getHours',
  'getMinutes',
  'getSeconds',
  'getMilliseconds',
];

export const standardFunctions: readonly StandardFunction[] = [
  ['has', 'has(x.key)', 'Whether a key exists.'],
  ['size', 'size(value)', 'The number of characters, elements, or keys.'],
  ['string', 'string(value)', 'The value as text.'],
  ['int', 'int(value)', 'A text or a number as a whole number.'],
  ['uint', 'uint(value)', 'A text or a number as a whole number that is not negative.'],
  ['double', 'double(value)', 'A text or a number as a number with a fraction.'],
  ['bool', 'bool(text)', 'The text `true` or `false` as a Boolean.'],
  ['bytes', 'bytes(text)', 'The UTF-8 bytes of a text.'],
  ['dyn', 'dyn(value)', 'The value; its type is not checked at the upload.'],
  ['type', 'type(value)', 'The type of a value.'],
  ['timestamp', 'timestamp(text)', 'A time from RFC 3339 text.'],
  ['duration', 'duration(text)', 'A duration from text such as `90s`.'],
  ['contains', 'text.contains(part)', 'Whether a text contains another text.'],
  ['startsWith', 'text.startsWith(part)', 'Whether a text begins with another text.'],
  ['endsWith', 'text.endsWith(part)', 'Whether a text ends with another text.'],
  ['split', 'text.split(separator)', 'The parts of a text between separators, as a list.'],
  ['trim', 'text.trim()', 'The text without white space at its ends.'],
  ['substring', 'text.substring(start, end)', 'The part of a text from one index to another.'],
  ['indexOf', 'text.indexOf(part)', 'The first index of a part; -1 if there is none.'],
  ['lastIndexOf', 'text.lastIndexOf(part)', 'The last index of a part; -1 if there is none.'],
  ['lowerAscii', 'text.lowerAscii()', 'The text in lower case.'],
  ['upperAscii', 'text.upperAscii()', 'The text in upper case.'],
  ['map', 'list.map(x, value)', 'The list of the values for each element x.'],
  ['filter', 'list.filter(x, condition)', 'The elements x for which the condition is true.'],
  ['all', 'list.all(x, condition)', 'Whether the condition is true for each element x.'],
  ['exists', 'list.exists(x, condition)', 'Whether the condition is true for at least one element x.'],
  ['exists_one', 'list.exists_one(x, condition)', 'Whether the condition is true for exactly one element x.'],
  ['bind', 'cel.bind(x, value, result)', 'Evaluates the result with x set to the value.'],
  ['hex', 'bytes.hex()', 'The bytes in hexadecimal.'],
  ['at', 'bytes.at(index)', 'The byte at an index.'],
  ...times.map((name) => [name, `timestamp.${name}()`, 'A component of a time, in UTC or in the given time zone.']),
].map(([name = '', form = '', about = '']) => ({ name, form, about }));
