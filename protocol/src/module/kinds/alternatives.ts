import { formatted, integer, list } from './field.ts';
import { allOf, type Check, oneLine, unixFile } from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** Group names such as `c++` and `libblas.so.3-x86_64-linux-gnu`. */
const groupName: Check = (text) =>
  /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,239}$/.test(text)
    ? undefined
    : 'must be a name of letters, digits, "_", ".", "+", and "-"';

const slave: Check = (text) => {
  const [link = '', name = '', path = '', ...more] = text.split(' ');
  const isComplete = more.length === 0 && groupName(name) === undefined;
  return isComplete && [link, path].every((file) => unixFile(file) === undefined && !/\s/.test(file))
    ? undefined
    : 'must be the path of a link, a name, and the path of a file, with one space between them';
};

export const alternativesKind = {
  alternatives: defineKind({
    description: 'The choice in a link group of `update-alternatives`',
    platforms: ['linux'],
    example: 'name: editor\npath: /usr/bin/vim.basic',
    required: {
      name: formatted('Name of the link group', groupName),
      path: formatted(
        'Path of the candidate to choose, which must be registered already, or is registered with `link`',
        allOf(unixFile, oneLine),
      ),
    },
    optional: {
      link: formatted(
        'Path of the link that the group manages; with it, the candidate is registered, and the group is created if it is missing',
        allOf(unixFile, oneLine),
        { pattern: '^/' },
      ),
      priority: integer('Priority of the candidate for the automatic mode; default: 50', -1_000_000, 1_000_000),
      slaves: list(
        'All slave links of the candidate, each as LINK NAME PATH',
        formatted('A slave link, such as /usr/share/man/man1/editor.1.gz editor.1.gz /opt/x/x.1.gz', slave),
        { atMost: 64 },
      ),
      ensure,
    },
    needs: { priority: 'link', slaves: 'link' },
    faults: ({ slaves }) => {
      if (!Array.isArray(slaves)) return [];
      const names = slaves.map((text) => String(text).split(' ')[1]);
      return names.flatMap((name, index) =>
        name === undefined || names.indexOf(name) === index
          ? []
          : [{ path: ['slaves', String(index)], message: `the slave link ${name} is declared twice` }],
      );
    },
  }),
};
