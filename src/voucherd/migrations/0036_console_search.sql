-- What is for sale is searched in product_listing, and what is not is little: these found nothing that is not found
-- there as fast, and every new version of a product had to be written into them.
DROP INDEX product_version_brand;
DROP INDEX product_version_words;
DROP INDEX product_words;
