/** Returns the text for a status or an outcome, shared by the console and the CLI. Only the API spells `cancelled`. */
export const statusText = (status: string): string => (status === 'cancelled' ? 'canceled' : status);
