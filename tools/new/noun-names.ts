export interface NounOptions {
  /**
   * Completes "see …", as in `the gadgets of machines`. Used in the API, the help, the console, and the documentation.
   */
  readonly about: string;
  /** Name of an example object, for documentation and tests. */
  readonly example: string;
  /** Whether the database stores the objects. */
  readonly table: boolean;
  /** Whether admins create and remove objects. */
  readonly writable: boolean;
  /** The term's definition in the glossary, in the singular. */
  readonly term: string;
}

export interface Names extends NounOptions {
  /** Plural in kebab case, such as `gadget-kits`. */
  name: string;
  /** Plural and singular in snake case, such as `gadget_kits` and `gadget_kit`. */
  snake: string;
  oneSnake: string;
  /** Plural in camel case and Pascal case, such as `gadgetKits` and `GadgetKits`. */
  camel: string;
  pascal: string;
  /** Singular in kebab, camel, and Pascal case, such as `gadget-kit`, `gadgetKit`, and `GadgetKit`. */
  oneName: string;
  oneCamel: string;
  one: string;
  /** Names for use in text, such as `Gadget kits`, `gadget kits`, and `gadget kit`. */
  title: string;
  words: string;
  oneWords: string;
  /** Expression for the route handlers, which `createHandlers` spreads. */
  handlers: string;
}
