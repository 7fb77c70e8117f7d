"""What functions compute on images; modules that import OpenCV are imported by a load."""
