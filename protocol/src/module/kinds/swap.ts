import { formatted, integer, text } from './field.ts';
import { allOf, type Check, maxLength, unixFile } from './format.ts';
import { defineKind, ensure } from './kind.ts';

const path: Check = allOf(unixFile, maxLength(1000), (value) => {
  if (/^\/(dev|proc|sys)\//.test(value)) return 'must be a file, such as /swapfile, not a device';
  return /\s/.test(value) ? 'must not contain spaces' : undefined;
});

const size: Check = (value) =>
  /^[1-9]\d{0,6}[MGT]$/.test(value) ? undefined : 'must be a whole number with M, G, or T, such as 512M or 2G';

/** Options in one field of fstab(5). */
const options: Check = allOf(maxLength(1000), (value) => {
  if (!/^[^\s\x00-\x1f\x7f]+$/.test(value))
    return 'must be options joined by commas without spaces, such as discard,nofail';
  return /(^|,)pri=/.test(value) ? 'must not contain pri=; declare `priority` instead' : undefined;
});

export const swapKind = {
  swap: defineKind({
    description: 'A swap file, its use, and its line in `/etc/fstab`',
    platforms: ['linux'],
    example: 'path: /swapfile\nsize: 512M\npriority: 10\noptions: "discard,nofail"',
    required: { path: formatted('Path of the file', path) },
    optional: {
      size: formatted('Size of the file: a whole number with M, G, or T, in powers of 1024', size),
      priority: integer('Swap with a higher priority is used first; by default, the kernel chooses', 0, 32_767),
      options: text('Options joined by commas, such as discard; default in a new line: sw', options),
      ensure,
    },
    presentNeeds: ['size'],
  }),
};
