import type { Json } from '../document.ts';

/**
 * A part of a string whose secrets are inserted later. Parts are never parsed again, so a value cannot become an
 * expression.
 */
export type DeferredPart = { readonly text: string } | { readonly secret: string; readonly default: string | null };

/** A value, or the parts of a string with secrets. */
export type Evaluated =
  | { readonly kind: 'value'; readonly value: Json }
  | { readonly kind: 'deferred'; readonly parts: readonly DeferredPart[] }
  /** The expression yields `omit`: the field, element, or key is omitted. */
  | { readonly kind: 'omitted' }
  | { readonly kind: 'fault'; readonly message: string };

/** Collects text and the secrets in it. */
export class TextWriter {
  readonly #pieces: DeferredPart[] = [];
  #literal = '';
  #length = 0;

  text(text: string): void {
    this.#literal += text;
    this.#length += text.length;
  }

  secret(secret: string, fallback: string | null): void {
    if (this.#literal !== '') this.#pieces.push({ text: this.#literal });
    this.#literal = '';
    this.#pieces.push({ secret, default: fallback });
  }

  /** Adds a line break, unless the text ends with one. */
  endLine(): void {
    if (!this.#literal.endsWith('\n')) this.text('\n');
  }

  get length(): number {
    return this.#length;
  }

  /** Changes whenever a part is written. */
  get mark(): number {
    return this.#length + this.#pieces.length;
  }

  get result(): Evaluated {
    if (this.#pieces.length === 0) return { kind: 'value', value: this.#literal };
    if (this.#literal !== '') this.#pieces.push({ text: this.#literal });
    this.#literal = '';
    return { kind: 'deferred', parts: this.#pieces };
  }
}
