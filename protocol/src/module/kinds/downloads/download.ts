import { formatted, text } from '../field.ts';
import { group, mode, owner, unixFilePath } from '../files.ts';
import * as format from '../format.ts';
import { defineKind, ensure } from '../kind.ts';

export const downloadKind = {
  download: defineKind({
    description: 'A file whose content comes from a server',
    platforms: ['linux'],
    example: `path: /usr/local/bin/app\nurl: https://downloads.example.org/app-1.4.2\nsha256: ${'0123456789abcdef'.repeat(4)}\nowner: root\ngroup: root\nmode: "0755"`,
    required: { path: unixFilePath, url: text('http or https URL of the content', format.httpUrl) },
    optional: {
      sha256: formatted('SHA-256 of the content, in hexadecimal', format.sha256),
      sha256_url: text(
        'https URL of a file that has the SHA-256 in the format of sha256sum; every plan, apply, and drift check reads it',
        format.httpsUrl,
      ),
      owner,
      group,
      mode,
      ensure,
    },
    space: 'path',
    exclusive: [['sha256', 'sha256_url']],
    oneOf: [['sha256', 'sha256_url']],
    normalise: (body) => {
      if (typeof body.sha256 === 'string') body.sha256 = body.sha256.toLowerCase();
    },
  }),
};
