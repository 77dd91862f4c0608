import { formatted, integer, list } from '../field.ts';
import { group, owner } from '../files.ts';
import * as format from '../format.ts';
import { defineKind, ensure } from '../kind.ts';
import { content } from './content.ts';

const archiveFile = content('archive', ': tar.gz, tar.xz, tar.zst, tar, or zip');

export const archiveKind = {
  archive: defineKind({
    description: 'A directory that an archive is unpacked into',
    platforms: ['linux'],
    example: `path: /opt/app\nurl: https://downloads.example.org/app-1.4.2.tar.gz\nsha256: ${'0123456789abcdef'.repeat(4)}\nstrip: 1\nexclude: ["doc/*"]\nkeep: 3\nowner: root\ngroup: root`,
    required: { path: formatted('Absolute path of the directory', format.unixFile, { pattern: '^/' }) },
    optional: {
      ...archiveFile.fields,
      strip: integer('Number of directories to remove at the start of each name in the archive', 0, 20),
      exclude: list(
        'Patterns of names that are left out, after strip; * matches any characters, ? one',
        formatted('A pattern', format.allOf(format.notEmpty, format.noNul, format.maxLength(500))),
      ),
      keep: integer(
        'Number of releases to keep: each archive gets a directory below `releases`, and the link `current` points to the directory of the declared archive',
        1,
        100,
      ),
      owner,
      group,
      ensure,
    },
    space: 'path',
    ...archiveFile.rules,
    oneOf: [['url', 'source']],
  }),
};
