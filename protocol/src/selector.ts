import type { Fault } from './errors.ts';

/**
 * A selector matches agents by their tags and attributes. It consists of terms separated by spaces, all of which must
 * match.
 *
 *     role=web env!=test region in (eu,us) tier notin (gold) canary !legacy attr.distro=debian note="two words"
 */
export interface Selector {
  readonly terms: readonly Term[];
}

interface Keyed {
  /** Key of a tag, or of an attribute if `attribute` is set. */
  readonly key: string;
  readonly attribute: boolean;
}

/** `in` matches a key that has one of the values. `notin` matches a key that has another value or is absent. */
export type Term = Keyed &
  (
    | { readonly operator: 'exists' | 'absent' }
    | { readonly operator: 'in' | 'notin'; readonly values: readonly string[] }
  );

export type ParsedSelector = { ok: true; selector: Selector } | { ok: false; fault: Fault & { column: number } };

export interface Labels {
  readonly tags: Readonly<Record<string, string>>;
  readonly attributes: Readonly<Record<string, string>>;
}

export const tagKeyForm = 'a tag key has 1 to 63 letters, digits, ".", "_", "-", or "/", and begins with a letter';
export const tagValueForm = 'a value has at most 256 characters and no control characters';
export const tagKeyPattern = /^[A-Za-z][A-Za-z0-9._/-]{0,62}$/;
const attributeKey = /^[A-Za-z0-9_][A-Za-z0-9._/:-]{0,254}$/;
const controlCharacter = /[\x00-\x1f\x7f-\x9f]/;
const attributePrefix = 'attr.';

/** Reports whether a string is a valid tag key. */
export const isTagKey = (key: string): boolean => tagKeyPattern.test(key);

/** Reports whether a string is a valid tag value, which may be empty. */
export const isTagValue = (value: string): boolean => [...value].length <= 256 && !controlCharacter.test(value);

/** Maximum length in UTF-16 units. Longer selectors are refused before they are parsed. */
export const maximumSelectorLength = 4096;

/** Reports whether the selector has no terms. The caller decides whether such a selector matches all agents or none. */
export const isEmpty = (selector: Selector): boolean => selector.terms.length === 0;

/** Parses a selector. @returns the terms, or the first error with its column, which counts UTF-16 units from 1 */
export function parseSelector(text: string): ParsedSelector {
  try {
    return { ok: true, selector: { terms: new SelectorReader(text).terms() } };
  } catch (error) {
    if (!(error instanceof SelectorFault)) throw error;
    return { ok: false, fault: { path: '', message: error.message, line: 1, column: error.offset + 1 } };
  }
}

/** Returns the attribute keys in a selector. Unlike tags, attributes are reported by the agents themselves. */
export const attributesOf = ({ terms }: Selector): string[] => [
  ...new Set(terms.filter(({ attribute }) => attribute).map(({ key }) => key)),
];

export const matchesSelector = (selector: Selector, labels: Labels): boolean =>
  selector.terms.every((term) => matchesTerm(term, labels));

function matchesTerm(term: Term, labels: Labels): boolean {
  const source = term.attribute ? labels.attributes : labels.tags;
  // Agents and operators choose the keys, so a key may be the name of an inherited property.
  const value = Object.hasOwn(source, term.key) ? source[term.key] : undefined;
  switch (term.operator) {
    case 'exists':
      return value !== undefined;
    case 'absent':
      return value === undefined;
    case 'in':
      return value !== undefined && term.values.includes(value);
    case 'notin':
      return value === undefined || !term.values.includes(value);
  }
}

/** Thrown and caught only in this file. */
class SelectorFault extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

const blank = /[ \t\r\n]*/y;
const keyCharacters = /[A-Za-z0-9._/:-]+/y;
const unquotedValue = /[^\s()"',=!]+/y;
const listOperators = ['in', 'notin'] as const;

class SelectorReader {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    if (text.length > maximumSelectorLength) {
      throw new SelectorFault(`a selector has at most ${maximumSelectorLength} characters`, maximumSelectorLength);
    }
    this.#text = text;
  }

  terms(): Term[] {
    const terms: Term[] = [];
    this.#read(blank);
    while (this.#position < this.#text.length) {
      terms.push(this.#term());
      const isParted = this.#read(blank) !== '' || this.#position === this.#text.length;
      if (!isParted) this.#fail(`unexpected ${this.#here()}: put a space between terms`);
    }
    return terms;
  }

  #term(): Term {
    if (this.#take('!')) return { ...this.#key(), operator: 'absent' };
    const start = this.#position;
    const key = this.#key();
    if (this.#take('!=')) return { ...key, operator: 'notin', values: [this.#value()] };
    if (this.#take('=')) return { ...key, operator: 'in', values: [this.#value()] };
    const end = this.#position;
    if (this.#read(blank) !== '') {
      const word = this.#read(keyCharacters);
      const operator = listOperators.find((name) => name === word);
      // `in=x` after a key is a separate term for the tag "in".
      if (
        operator !== undefined &&
        this.#text[this.#position] !== '=' &&
        !this.#text.startsWith('!=', this.#position)
      ) {
        return { ...key, operator, values: this.#list(operator) };
      }
    }
    this.#position = end;
    const isOperator = !key.attribute && (listOperators as readonly string[]).includes(key.key);
    if (isOperator) this.#fail(`"${key.key}" requires a key before it: key ${key.key} (a,b)`, start);
    return { ...key, operator: 'exists' };
  }

  #key(): Keyed {
    const start = this.#position;
    const written = this.#read(keyCharacters);
    if (written === '') this.#fail(`expected a key, not ${this.#here()}`);
    const attribute = written.startsWith(attributePrefix);
    const key = attribute ? written.slice(attributePrefix.length) : written;
    if (attribute && !attributeKey.test(key)) this.#fail('expected the name of an attribute after "attr."', start);
    if (!attribute && !isTagKey(key)) this.#fail(`${JSON.stringify(key)} is not a valid key: ${tagKeyForm}`, start);
    return { key, attribute };
  }

  #list(operator: string): string[] {
    this.#read(blank);
    if (!this.#take('(')) this.#fail(`expected "(" after ${operator}, not ${this.#here()}: key ${operator} (a,b)`);
    const values: string[] = [];
    do {
      this.#read(blank);
      values.push(this.#value());
      this.#read(blank);
    } while (this.#take(','));
    if (!this.#take(')')) this.#fail(`expected "," or ")", not ${this.#here()}`);
    return values;
  }

  #value(): string {
    const start = this.#position;
    const quote = this.#text[start];
    const value = quote === '"' || quote === "'" ? this.#quoted(quote) : this.#read(unquotedValue);
    if (value === '' && this.#position === start) {
      this.#fail(`expected a value, not ${this.#here()}; the empty value is written ""`);
    }
    if (!isTagValue(value)) this.#fail(tagValueForm, start);
    return value;
  }

  #quoted(quote: string): string {
    const start = this.#position;
    let value = '';
    for (let position = start + 1; position < this.#text.length; position += 1) {
      const character = this.#text[position] as string;
      if (character === quote) {
        this.#position = position + 1;
        return value;
      }
      if (character === '\\') position += 1;
      value += this.#text[position] ?? '';
    }
    return this.#fail('the quoted value is not closed', start);
  }

  #take(expected: string): boolean {
    if (!this.#text.startsWith(expected, this.#position)) return false;
    this.#position += expected.length;
    return true;
  }

  /** @returns the text that matches the pattern at the current position, which may be empty */
  #read(pattern: RegExp): string {
    pattern.lastIndex = this.#position;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#position += found.length;
    return found;
  }

  #here(): string {
    const character = this.#text[this.#position];
    return character === undefined ? 'the end' : JSON.stringify(character);
  }

  #fail(message: string, offset = this.#position): never {
    throw new SelectorFault(message, offset);
  }
}
