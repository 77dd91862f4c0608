/** The formats of fields, for `import * as format`. */

export * from './formats/accounts.ts';
export * from './formats/databases.ts';
export * from './formats/packages.ts';
export * from './formats/paths.ts';
export * from './formats/structured.ts';
export * from './formats/system.ts';
export * from './formats/text.ts';
export * from './formats/units.ts';
export * from './formats/urls.ts';
