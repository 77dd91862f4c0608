import { inspect } from 'node:util';

/**
 * The URL of a PostgreSQL database. Its password is hidden when the URL is printed, logged, or serialized as JSON; only
 * `reveal` returns the password.
 */
export class DatabaseUrl {
  readonly #url: string;

  /**
   * @param url `postgres://user:password@host:port/database`
   * @throws TypeError if `url` has a different format; the message does not repeat the text
   */
  constructor(url: string) {
    if (!isDatabaseUrl(url)) throw new TypeError('must look like postgres://user:password@host:5432/database');
    this.#url = url;
  }

  /** Returns the URL with its password, for the driver. */
  reveal(): string {
    return this.#url;
  }

  /** Returns the URL with all passwords masked, including those in query parameters. */
  toString(): string {
    const url = new URL(this.#url);
    if (url.password !== '') url.password = 'x';
    const shown = [...url.searchParams].map(([name, value]) => `${name}=${/pass|key/i.test(name) ? masked : value}`);
    url.search = '';
    const location = url.href.replace(/^(\w+:\/\/[^/@]*):x@/, `$1:${masked}@`);
    return shown.length === 0 ? location : `${location}?${shown.join('&')}`;
  }

  toJSON(): string {
    return this.toString();
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

const masked = '••••';

export function isDatabaseUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text);
}
