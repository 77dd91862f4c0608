import { filePathFault } from '../files/module-file.ts';
import { formatted, integer, list, text } from './field.ts';
import { group, owner } from './files.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';

export const archiveKind = {
  archive: defineKind({
    description: 'A directory that an archive is unpacked into',
    platforms: ['linux'],
    example: `path: /opt/app\nurl: https://downloads.example.org/app-1.4.2.tar.gz\nsha256: ${'0123456789abcdef'.repeat(4)}\nstrip: 1\nexclude: ["doc/*"]\nkeep: 3\nowner: root\ngroup: root`,
    required: { path: formatted('Absolute path of the directory', format.unixFile, { pattern: '^/' }) },
    optional: {
      source: formatted(
        'Path of the archive in the module’s folder: tar.gz, tar.xz, tar.zst, tar, or zip',
        format.allOf(format.notEmpty, (path) => filePathFault(path)),
      ),
      url: text('http or https URL of the archive; requires sha256', format.httpUrl),
      sha256: formatted('SHA-256 of the archive at the URL, in hexadecimal', format.sha256),
      strip: integer('Number of directories to remove at the start of each name in the archive', 0, 20),
      exclude: list(
        'Patterns of names that are left out, after strip; * matches any characters, ? one',
        formatted('A pattern', format.allOf(format.notEmpty, format.noNul, format.maxLength(500))),
      ),
      keep: integer(
        'Number of releases to keep: each archive gets a directory below `releases`, and the link `current` leads to it',
        1,
        100,
      ),
      owner,
      group,
      ensure,
    },
    space: 'path',
    sourced: 'file',
    exclusive: [
      ['url', 'source'],
      ['sha256', 'source'],
    ],
    needs: { url: 'sha256', sha256: 'url' },
    oneOf: [['url', 'source']],
    normalise: (body) => {
      if (typeof body.sha256 === 'string') body.sha256 = body.sha256.toLowerCase();
    },
  }),
};
