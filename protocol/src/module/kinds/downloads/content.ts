import { filePathFault } from '../../files/module-file.ts';
import { formatted, text } from '../field.ts';
import * as format from '../format.ts';

/**
 * Returns the fields of a kind whose content is a file in the module's folder, or comes from a server with a hash, and
 * the rules between these fields.
 * @param file the file, for descriptions, such as `archive`
 * @param more description of the formats of a file in the module's folder
 */
export const content = (file: string, more = '') => ({
  fields: {
    source: formatted(
      `Path of the ${file} in the module’s folder${more}`,
      format.allOf(format.notEmpty, (path) => filePathFault(path)),
    ),
    url: text(`http or https URL of the ${file}; requires sha256`, format.httpUrl),
    sha256: formatted(`SHA-256 of the ${file} at the URL, in hexadecimal`, format.sha256),
  },
  rules: {
    sourced: 'file' as const,
    exclusive: [
      ['url', 'source'],
      ['sha256', 'source'],
    ],
    needs: { url: 'sha256', sha256: 'url' },
    normalise: (body: Record<string, unknown>) => {
      if (typeof body.sha256 === 'string') body.sha256 = body.sha256.toLowerCase();
    },
  },
});
