import { compareRpmParts } from '../../../rpm-version-order.ts';
import { compareVersions } from '../../../version-order.ts';
import type { Meter } from '../meter.ts';
import { ExpressionError } from '../values.ts';
import type { ExpressionFunction } from './function.ts';

const orders = ['deb', 'rpm'] as const;
type Order = (typeof orders)[number];

/** Maximum length of a version, in characters. */
const maximumVersion = 256;

/** A version, which operators compare in the order of a package manager. */
export class Version {
  // Private, because an expression can read the properties of a value.
  readonly #text: string;
  readonly #order: Order;

  /** @throws ExpressionError if the text is not a version, or there is no such order */
  constructor(text: string, order: string = 'deb') {
    if (text === '' || text.length > maximumVersion || /\s/.test(text))
      throw new ExpressionError(
        `${JSON.stringify(text.slice(0, 64))} is not a version; write 1 to ${maximumVersion} characters without spaces, such as "1.2.3"`,
      );
    const found = orders.find((name) => name === order);
    if (found === undefined)
      throw new ExpressionError(
        `there is no order ${JSON.stringify(order.slice(0, 64))} of versions: write "deb" or "rpm"`,
      );
    this.#text = text;
    this.#order = found;
  }

  static textOf = (version: Version): string => version.#text;

  /** Compares two versions. Text is compared in the order of the other version. */
  static compare(meter: Meter, one: Version | string, other: Version | string): number {
    const order = (one instanceof Version ? one : (other as Version)).#order;
    const left = one instanceof Version ? one : new Version(one, order);
    const right = other instanceof Version ? other : new Version(other, order);
    if (left.#order !== right.#order)
      throw new ExpressionError('versions of "deb" and of "rpm" cannot be compared: give both the same order');
    meter.spend(left.#text.length + right.#text.length);
    return order === 'deb' ? compareVersions(left.#text, right.#text) : compareRpm(left.#text, right.#text);
  }
}

/** Compares epochs, versions, and releases. As in an rpm requirement, a missing release matches every release. */
function compareRpm(one: string, other: string): number {
  const [left, right] = [one, other].map((text) => /^(?:(\d+):)?([^-]*)(?:-(.*))?$/s.exec(text) ?? []);
  const [, leftEpoch = '0', leftVersion = '', leftRelease] = left ?? [];
  const [, rightEpoch = '0', rightVersion = '', rightRelease] = right ?? [];
  const order = compareRpmParts(leftEpoch, rightEpoch) || compareRpmParts(leftVersion, rightVersion);
  if (order !== 0 || leftRelease === undefined || rightRelease === undefined) return order;
  return compareRpmParts(leftRelease, rightRelease);
}

/** The operators that compare versions, with the results of `compare` for which they are true. */
export const versionOperators: readonly (readonly [operator: string, holds: (order: number) => boolean])[] = [
  ['<', (order) => order < 0],
  ['<=', (order) => order <= 0],
  ['>', (order) => order > 0],
  ['>=', (order) => order >= 0],
  ['==', (order) => order === 0],
];

export const versionFunctions: readonly ExpressionFunction[] = [
  {
    name: 'version',
    form: 'version(text)',
    signatures: ['version(string): Version', 'version(string, string): Version'],
    about:
      'A version, which `<`, `<=`, `>`, `>=`, `==`, and `!=` compare with another version or a text, in the order of Debian packages: `~` comes first, as in `1.0~rc1`. With `"rpm"` as the second argument, in the order of RPM packages.',
    examples: [
      ['version("1.10") > version("1.9")', 'true'],
      ['version("2.4~rc1-1") < "2.4"', 'true'],
      ['version("1.0^git1", "rpm") < "1.0.1"', 'true'],
    ],
    call: (_, text: string, order?: string) => new Version(text, order),
  },
];
