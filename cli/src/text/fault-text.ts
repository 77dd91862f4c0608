import type { Fault } from '@muster/protocol';
import { sanitiseLine } from './sanitize.ts';
import type { Colors } from './style.ts';

/**
 * A fault of a module in the format of compilers, so that editors find the position: `file.yml:12:7 message`.
 * @param file as it was named
 */
export function faultLine(file: string, fault: Fault, color: Colors, warning = false): string {
  const { line, column, path, message } = fault;
  const place = line === undefined ? `${file}${path === '' ? '' : ` ${path}`}` : `${file}:${line}:${column ?? 1}`;
  const kind = warning ? `${color.yellow('warning:')} ` : '';
  return `${color.bold(sanitiseLine(place))} ${kind}${sanitiseLine(message)}`;
}
