export interface NounOptions {
  /**
   * Completes "see …", as in `the gadgets of machines`. Appears in the API, the help, the console, and the
   * documentation.
   */
  readonly about: string;
  /** Name of an example object, for documentation and tests. */
  readonly example: string;
  /** Whether the database stores the objects. */
  readonly table: boolean;
  /** Whether Admins create and remove objects. */
  readonly writable: boolean;
  /** The term's definition in the glossary, in the singular. */
  readonly term: string;
}

export interface Names extends NounOptions {
  /** Such as `gadget-kits`. */
  name: string;
  /** Such as `gadget_kits` and `gadget_kit`. */
  snake: string;
  oneSnake: string;
  /** Such as `gadgetKits` and `GadgetKits`. */
  camel: string;
  pascal: string;
  /** Such as `gadget-kit`, `gadgetKit`, and `GadgetKit`. */
  oneName: string;
  oneCamel: string;
  one: string;
  /** Such as `Gadget kits`, `gadget kits`, and `gadget kit`. */
  title: string;
  words: string;
  oneWords: string;
  /** Expression that returns the route handlers. `createHandlers` spreads it. */
  handlers: string;
}
