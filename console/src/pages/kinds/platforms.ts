/** Names of the operating systems that kinds support. */
const names: Readonly<Record<string, string>> = { linux: 'Linux', macos: 'macOS', windows: 'Windows' };

export const platformsText = (platforms: readonly string[]): string =>
  platforms.map((platform) => names[platform] ?? platform).join(', ');

export const platformOptions = Object.entries(names).map(([value, label]) => ({ value, label }));
