/**
 * Shell text that creates a certificate for `shop.example.org` and `www.shop.example.org`, and its key: /root/shop.pem and
 * /root/shop.key.
 */
export const newCertificate =
  'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -keyout /root/shop.key -out /root/shop.pem -subj /CN=shop -addext subjectAltName=DNS:shop.example.org,DNS:www.shop.example.org 2> /dev/null';
