/** The format of a secret's name. */
export const secretName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
