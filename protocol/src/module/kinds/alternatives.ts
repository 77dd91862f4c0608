import { formatted } from './field.ts';
import { allOf, type Check, oneLine, unixFile } from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** Group names such as `c++` and `libblas.so.3-x86_64-linux-gnu`. */
const groupName: Check = (text) =>
  /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,239}$/.test(text)
    ? undefined
    : 'must be a name of letters, digits, "_", ".", "+", and "-"';

export const alternativesKind = {
  alternatives: defineKind({
    description: 'The choice in a link group of `update-alternatives`',
    platforms: ['linux'],
    example: 'name: editor\npath: /usr/bin/vim.basic',
    required: {
      name: formatted('Name of the link group', groupName),
      path: formatted('Registered path of the candidate to choose', allOf(unixFile, oneLine)),
    },
    optional: { ensure },
  }),
};
