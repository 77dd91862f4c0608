import type { Invocation } from '../config/read.ts';
import { type Changes, changesOf, reloaded, sourcesAfter } from '../config/reload.ts';
import type { Config } from '../config/schema.ts';

type Sources = Invocation['sources'];

/** The current configuration. A reload replaces its reloadable settings. */
export class Settings {
  readonly #atStart: Config;
  #current: Config;
  #sources: Sources;

  /** @param sources source of each value, by dotted key; missing keys have their default values */
  constructor(config: Config, sources: Sources) {
    this.#atStart = config;
    this.#current = config;
    this.#sources = sources;
  }

  get current(): Config {
    return this.#current;
  }

  get sources(): Sources {
    return this.#sources;
  }

  /**
   * Applies the reloadable settings from a new configuration.
   * @returns the names of the changed settings
   */
  reload(next: Config, sources: Sources, about: { ownCertificate: boolean }): Changes {
    const changes = changesOf(this.#atStart, this.#current, next, about);
    this.#sources = sourcesAfter(this.#sources, sources);
    this.#current = reloaded(this.#current, next);
    return changes;
  }

  /**
   * Adds getters to an object that read the current configuration on each access. Do not copy the result with `...`:
   * the copy would not follow a reload.
   */
  extend<T extends object, R extends object>(target: T, readers: { readonly [K in keyof R]: Reader<R[K]> }): T & R {
    for (const [key, read] of Object.entries<Reader<unknown>>(readers))
      Object.defineProperty(target, key, { enumerable: true, get: () => read(this.#current) });
    return target as T & R;
  }
}

type Reader<T> = (config: Config) => T;
