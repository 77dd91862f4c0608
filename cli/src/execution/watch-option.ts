import { Option } from 'commander';

/** The option that makes a command redraw its output after each change. The program handles it for every command. */
export const watchOption = (): Option => new Option('-w, --watch', 'Redraw after each change, until Ctrl-C');
